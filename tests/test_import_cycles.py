"""No module imports itself through others, imports for types included."""

from graphlib import CycleError, TopologicalSorter

import grimp


def test_imports_form_no_cycle() -> None:
    graph = grimp.build_graph("pykafka_core", exclude_type_checking_imports=False)
    # Grimp takes a compiled module, such as pykafka_core._core, for the package that holds it.
    imports = {
        module: graph.find_modules_directly_imported_by(module) - {"pykafka_core"}
        for module in graph.modules
    }
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        raise AssertionError(" → ".join(error.args[1])) from None
