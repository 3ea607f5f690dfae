//! Binds the codec to Python: messages are objects of slot classes (`pykafka_core.protocol`).

mod errors;
mod layout;
mod metadata;
mod objects;
pub(crate) mod parts;
mod schema;
mod slots;
mod whole;

use pyo3::prelude::*;

use errors::ProtocolError;

/// Adds the codec's functions.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("ProtocolError", module.py().get_type::<ProtocolError>())?;
    module.add_class::<parts::RequestDecoder>()?;
    module.add_class::<parts::MessageEncoder>()?;
    module.add_class::<parts::EncodedMessage>()?;
    for function in [
        wrap_pyfunction!(whole::decode_request, module)?,
        wrap_pyfunction!(whole::decode_response, module)?,
        wrap_pyfunction!(whole::decode_message, module)?,
        wrap_pyfunction!(whole::encode_message, module)?,
        wrap_pyfunction!(metadata::decode_metadata_record, module)?,
        wrap_pyfunction!(metadata::encode_metadata_record, module)?,
        wrap_pyfunction!(metadata::decode_metadata_records, module)?,
        wrap_pyfunction!(schema::message_names, module)?,
        wrap_pyfunction!(schema::message_schema, module)?,
        wrap_pyfunction!(schema::message_versions, module)?,
        wrap_pyfunction!(schema::api_versions, module)?,
        wrap_pyfunction!(schema::is_flexible, module)?,
    ] {
        module.add_function(function)?;
    }
    Ok(())
}
