use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// A version of a handler: the SHA-256 of the component's bytes.
///
/// Built from the bytes because builds name themselves badly: a fixed handler deployed under an old number
/// would silently keep the old code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version([u8; 32]);

impl Version {
    /// The version that these bytes are.
    pub fn of(component: &[u8]) -> Self {
        Version(Sha256::digest(component).into())
    }

    /// The digest itself.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The first 12 hexadecimal digits: enough for people, not for machines.
    pub fn short(&self) -> String {
        self.to_string()[..12].to_owned()
    }
}

impl From<[u8; 32]> for Version {
    fn from(digest: [u8; 32]) -> Self {
        Version(digest)
    }
}

/// All 64 hexadecimal digits, in lower case.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version({self})")
    }
}

/// A text that is not the 64 hexadecimal digits of a [`Version`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a version is the 64 hexadecimal digits of a SHA-256")]
pub struct NotAVersion;

impl FromStr for Version {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(NotAVersion);
        }
        let mut digest = [0; 32];
        for (byte, digits) in digest.iter_mut().zip(0..) {
            let at = digits * 2;
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| NotAVersion)?;
        }
        Ok(Version(digest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_back_from_what_it_displays() {
        let version = Version::of(b"");
        assert_eq!(version.to_string(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(version.to_string().parse(), Ok(version));
        assert_eq!(version.short(), "e3b0c44298fc");
    }

    #[test]
    fn anything_else_is_not_a_version() {
        for text in ["", "e3b0", &"g".repeat(64), &"é".repeat(32)] {
            assert_eq!(text.parse::<Version>(), Err(NotAVersion));
        }
    }
}
