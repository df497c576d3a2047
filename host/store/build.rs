//! The migrations are part of the program: a new file among them is a change.

fn main() {
    println!("cargo::rerun-if-changed=../../migrations");
}
