//! Passes the compile profile to the module, so that benchmarks can refuse an unoptimized build.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for name in ["PROFILE", "OPT_LEVEL"] {
        let value = std::env::var(name).expect("cargo sets it for build scripts");
        println!("cargo::rustc-env=PYKAFKA_CORE_{name}={value}");
    }
}
