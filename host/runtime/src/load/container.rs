//! Whether a file is a component at all, by its first bytes.

use wasmtime::Engine;

use super::LoadError;
use crate::limits::Limits;

const MAGIC: &[u8] = b"\0asm";
/// What follows the magic: a version and a layer, two bytes each.
const CORE_MODULE: &[u8] = &[1, 0, 0, 0];

pub(super) fn check(bytes: &[u8], limits: &Limits) -> Result<(), LoadError> {
    if bytes.is_empty() {
        return Err(LoadError::Empty);
    }
    if bytes.len() > limits.component_bytes {
        return Err(LoadError::TooLarge { size: bytes.len(), limit: limits.component_bytes });
    }
    if Engine::detect_precompiled(bytes).is_some() {
        return Err(LoadError::Precompiled);
    }
    match bytes.strip_prefix(MAGIC) {
        Some(rest) if rest.starts_with(CORE_MODULE) => Err(LoadError::CoreModule),
        // Any other version or layer, too: wasmtime knows which it takes, and says so.
        Some(_) => Ok(()),
        None => Err(text_beginning(bytes).map_or(LoadError::NotWasm, LoadError::Text)),
    }
}

/// The first line with something in it, shortened, if the file looks like text.
fn text_beginning(bytes: &[u8]) -> Option<String> {
    let beginning = &bytes[..bytes.len().min(1024)];
    let text = match std::str::from_utf8(beginning) {
        Ok(text) => text,
        // The cut may have gone through a character.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&beginning[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let is_text = !text.chars().any(|c| c.is_control() && !c.is_whitespace());
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    is_text.then(|| line.chars().take(60).collect())
}
