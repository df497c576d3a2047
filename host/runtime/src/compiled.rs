//! Compiled code, kept on disk so that a restart does not compile every handler again.
//!
//! Loading compiled code is running it: nothing in the file is checked against the component, and native code
//! can do anything. So only files that this process's user wrote, in a directory that no one else can write
//! to, are ever loaded; and since a file can be cut short or rot all the same, only if their checksum holds.
//! Whatever is wrong with a file or with the directory costs a compilation and is never an error.

use std::fs::{self, DirBuilder, File, Metadata};
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::version::Version;

/// A directory of compiled components, or none.
pub(crate) struct Compiled {
    directory: Option<PathBuf>,
}

impl Compiled {
    /// Uses `directory`, making it if need be, if it is there for this process alone.
    pub(crate) fn in_directory(directory: Option<&Path>) -> Self {
        let directory = directory.and_then(|directory| match claim(directory) {
            Ok(()) => Some(directory.to_owned()),
            Err(reason) => {
                let directory = directory.display();
                tracing::warn!(%directory, %reason, "not keeping compiled handlers");
                None
            }
        });
        Compiled { directory }
    }

    /// Compiles a component, or loads what was compiled before.
    ///
    /// # Errors
    ///
    /// The component does not compile.
    pub(crate) fn component(
        &self,
        engine: &Engine,
        version: &Version,
        bytes: &[u8],
    ) -> wasmtime::Result<Component> {
        let Some(file) = self.file(engine, version) else { return Component::from_binary(engine, bytes) };
        if let Some(component) = file.load(engine) {
            return Ok(component);
        }
        let component = Component::from_binary(engine, bytes)?;
        if let Err(error) = component.serialize().map_err(io::Error::other).and_then(|code| file.store(&code))
        {
            let path = file.path.display();
            tracing::warn!(%path, %error, "a compiled handler could not be kept");
        }
        Ok(component)
    }

    fn file(&self, engine: &Engine, version: &Version) -> Option<CompiledFile> {
        let mut settings = Sha256Hasher(Sha256::new());
        engine.precompile_compatibility_hash().hash(&mut settings);
        let key = format!("{version}-{:016x}", settings.finish());
        let path = self.directory.as_ref()?.join(format!("{key}.compiled"));
        Some(CompiledFile { path, key })
    }
}

/// One compiled component: 32 bytes of checksum, then wasmtime's artefact.
struct CompiledFile {
    path: PathBuf,
    /// The component's version and the settings it was compiled with. It goes into the checksum, so that a file
    /// under another's name is not taken for it.
    key: String,
}

impl CompiledFile {
    fn load(&self, engine: &Engine) -> Option<Component> {
        let content = match self.read() {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => return self.useless(&error.to_string()),
        };
        let Some((checksum, artefact)) = content.split_first_chunk::<32>() else {
            return self.useless("it is cut short");
        };
        if *checksum != self.checksum(artefact) {
            return self.useless("its checksum does not match");
        }
        // SAFETY: `deserialize` wants an artefact that wasmtime itself produced and that nobody changed since.
        // The only writer of these files is `store`, which is given what `Component::serialize` returned. The
        // file belongs to this process's user and nobody else may write to it or to its directory, so no one
        // less privileged than this process can have made it; the checksum rules out truncation, decay and a
        // file under the wrong name. What was checked is a private copy in memory, so nothing can change it
        // between the check and the use. An artefact of another wasmtime or other settings has another name,
        // and `deserialize` refuses it besides.
        match unsafe { Component::deserialize(engine, artefact) } {
            Ok(component) => Some(component),
            Err(error) => self.useless(&format!("{error:#}")),
        }
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        let mut file = File::open(&self.path)?;
        if let Some(reason) = distrust(&file.metadata()?) {
            return Err(io::Error::other(reason));
        }
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        Ok(content)
    }

    fn useless<T>(&self, reason: &str) -> Option<T> {
        let path = self.path.display();
        tracing::warn!(%path, reason, "a compiled handler is not used and compiled anew");
        None
    }

    /// Written under another name first: a reader sees all of it or nothing. The name is not synced to disk,
    /// because a file that a crash cut short is found out by its checksum.
    fn store(&self, artefact: &[u8]) -> io::Result<()> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        // Temporary files are made with mode 0600.
        let mut file = tempfile::Builder::new().prefix(".compiling-").tempfile_in(directory)?;
        file.write_all(&self.checksum(artefact))?;
        file.write_all(artefact)?;
        file.persist(&self.path)?;
        Ok(())
    }

    fn checksum(&self, artefact: &[u8]) -> [u8; 32] {
        Sha256::new().chain_update(&self.key).chain_update(artefact).finalize().into()
    }
}

/// Makes the directory if it is missing, and says why it cannot be trusted if it can't.
fn claim(directory: &Path) -> Result<(), String> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .and_then(|()| fs::symlink_metadata(directory))
        .map_err(|error| error.to_string())
        .and_then(|metadata| match distrust(&metadata) {
            _ if metadata.is_symlink() => Err("it is a symbolic link".into()),
            _ if !metadata.is_dir() => Err("it is not a directory".into()),
            Some(reason) => Err(reason.into()),
            None => Ok(()),
        })
}

/// Why someone else may have written what this is the metadata of.
fn distrust(metadata: &Metadata) -> Option<&'static str> {
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        Some("it belongs to another user")
    } else if metadata.mode() & 0o022 != 0 {
        Some("others than its owner may write to it")
    } else {
        None
    }
}

/// The standard library's hasher may change with the compiler; this one names files.
struct Sha256Hasher(Sha256);

impl Hasher for Sha256Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest: [u8; 32] = self.0.clone().finalize().into();
        digest[..8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}
