//! `wasi:random`: numbers that look random and are a function of the command's id.
//!
//! All three interfaces share one stream. "Secure" is a promise it cannot keep: whoever knows the id of a command
//! knows the numbers. A handler that replays to the same bytes everywhere cannot have secrets of its own.

use sha2::{Digest, Sha256};
use wasmtime::component::LinkerInstance;

use crate::failure::Call;
use crate::instance::{State, refusal};

/// The most bytes that one call returns. The host would have to hold them.
const MOST_BYTES: u64 = 1 << 20;

/// SHA-256 in counter mode: block n is the digest of the seed's digest, the call and n.
pub(super) struct Random {
    command: [u8; 32],
    /// The seed of the present call: the command's, or none.
    seed: [u8; 32],
    call: u8,
    next_block: u64,
    /// What is left of the current block is its end.
    block: [u8; 32],
    left: usize,
}

impl Random {
    pub(super) fn seeded(seed: &[u8]) -> Self {
        let seed = Sha256::digest(seed).into();
        Random { command: seed, seed, call: 0, next_block: 0, block: [0; 32], left: 0 }
    }

    pub(super) fn restart(&mut self, call: Call, of_command: bool) {
        self.seed = if of_command { self.command } else { [0; 32] };
        self.call = match call {
            Call::Start => 0,
            Call::Describe => 1,
            Call::Boundary => 2,
            Call::Apply => 3,
            Call::Decide => 4,
        };
        (self.next_block, self.left) = (0, 0);
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            if self.left == 0 {
                let digest = Sha256::new().chain_update(self.seed).chain_update([self.call]);
                self.block = digest.chain_update(self.next_block.to_le_bytes()).finalize().into();
                self.next_block += 1;
                self.left = self.block.len();
            }
            *byte = self.block[self.block.len() - self.left];
            self.left -= 1;
        }
    }

    fn bytes(&mut self, length: u64) -> wasmtime::Result<Vec<u8>> {
        if length > MOST_BYTES {
            return Err(refusal(format!(
                "it asked for {length} random bytes at once, more than {MOST_BYTES}"
            )));
        }
        let mut bytes = vec![0; length as usize];
        self.fill(&mut bytes);
        Ok(bytes)
    }

    fn number(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }
}

pub(super) fn random(to: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    bytes(to, "get-random-bytes")?;
    number(to, "get-random-u64")
}

pub(super) fn insecure(to: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    bytes(to, "get-insecure-random-bytes")?;
    number(to, "get-insecure-random-u64")
}

pub(super) fn insecure_seed(to: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    to.func_wrap("insecure-seed", |mut cx, (): ()| {
        let random = &mut cx.data_mut().world.random;
        Ok(((random.number(), random.number()),))
    })
}

fn bytes(to: &mut LinkerInstance<'_, State>, function: &str) -> wasmtime::Result<()> {
    to.func_wrap(function, |mut cx, (length,): (u64,)| Ok((cx.data_mut().world.random.bytes(length)?,)))
}

fn number(to: &mut LinkerInstance<'_, State>, function: &str) -> wasmtime::Result<()> {
    to.func_wrap(function, |mut cx, (): ()| Ok((cx.data_mut().world.random.number(),)))
}
