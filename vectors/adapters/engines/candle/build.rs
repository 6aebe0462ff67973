//! The version of candle that Cargo.lock names.
fn main() {
    let lock = std::fs::read_to_string("Cargo.lock").unwrap();
    let version = lock.split("name = \"candle-nn\"\nversion = \"").nth(1).unwrap().split('"').next().unwrap();
    println!("cargo:rustc-env=CANDLE_VERSION={version}");
}
