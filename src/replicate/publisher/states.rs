//! Putting whole states: as an entry where there are no changes to put, and beside the log for those who start.

use super::Publisher;
use super::end::{Growth, unusable};
use super::error::PublishError;
use super::patience::Made;
use crate::model::RowDigest;
use crate::model::time::now;
use crate::replicate::entry::Header;
use crate::replicate::frame::Hash;
use crate::replicate::layout;
use crate::replicate::state::{Manifest, PartRef, encode_part};
use crate::store::StoreError;
use crate::store::replication::OriginView;
use crate::store::replication::SCHEMA;

/// The size of a part before it is deflated, in bytes.
const PART_BYTES: usize = 8 << 20;
/// The most entries that whoever starts applies after a state.
const MAX_ENTRIES: u64 = 1000;
/// What may follow any state, however small, in bytes.
const SMALL_BYTES: u64 = 1 << 20;

/// The parts of a state in the bucket.
struct Dumped {
    parts: Vec<PartRef>,
    digest: RowDigest,
    /// Their bytes in the store.
    bytes: u64,
}

impl Publisher {
    /// Puts a state as the next entry.
    pub(super) fn put_state_entry(&mut self) -> Result<(), PublishError> {
        // A file that took the place of the database need not be marked.
        self.mark()?;
        let view = self.follower.origin()?;
        let header = self.next_header(view.head()?.head(), RowDigest::default(), None);
        let dumped = self.dump(&view, header.slot)?;
        let header = Header { digest: dumped.digest, state: Some(dumped.parts), ..header };
        self.put_entry(&header, &[])?;
        self.growth = Growth { state_bytes: dumped.bytes, ..Growth::default() };
        self.state_at = header.at;
        Ok(())
    }

    /// Puts the manifest of an entry that is a state; the same bytes whoever does it.
    pub(super) fn put_manifest_of(&mut self, header: &Header, hash: Hash) -> Result<(), PublishError> {
        let manifest = Manifest {
            id: header.id,
            slot: header.slot,
            entry_hash: hash,
            schema: header.schema,
            seq: header.seq,
            lineage: header.lineage,
            digest: header.digest,
            at: header.at,
            parts: header.state.clone().unwrap_or_default(),
        };
        self.put_manifest(&manifest).map(drop)
    }

    /// Whether much log has gathered since the last state.
    pub(super) fn is_state_due(&self) -> bool {
        let Growth { entries, bytes, state_bytes } = self.growth;
        let age_s = u64::try_from(now().unix_s().saturating_sub(self.state_at.unix_s())).unwrap_or(0);
        let is_much = entries >= MAX_ENTRIES || bytes > (state_bytes / 2).max(SMALL_BYTES);
        entries > 0 && (is_much || age_s >= self.settings.state_every.as_secs())
    }

    /// Puts a state beside the log's end for those who start, then sweeps; does nothing where a commit came meanwhile, which
    /// goes first.
    pub(super) fn put_state_beside(&mut self, view: &OriginView) -> Result<(), PublishError> {
        let Some(end) = self.end else { return Ok(()) };
        let head = view.head()?.head();
        if head != end.head {
            return Ok(());
        }
        let dumped = self.dump(view, end.slot)?;
        let manifest = Manifest {
            id: self.id,
            slot: end.slot,
            entry_hash: end.hash,
            schema: SCHEMA,
            seq: head.seq,
            lineage: head.lineage,
            digest: dumped.digest,
            at: now(),
            parts: dumped.parts,
        };
        if manifest.digest != end.digest {
            return Err(StoreError::damaged("meta", "the rows do not add up to the digest that was published").into());
        }
        if self.put_manifest(&manifest)? {
            tracing::info!(slot = end.slot, seq = head.seq, bytes = dumped.bytes, "put a state");
        }
        self.growth = Growth { state_bytes: dumped.bytes, ..Growth::default() };
        self.state_at = manifest.at;
        self.sweep()
    }

    /// Creates a manifest. Returns whether it was ours: there may be one of that state already.
    fn put_manifest(&mut self, manifest: &Manifest) -> Result<bool, PublishError> {
        let name = layout::state(manifest.slot);
        let (bytes, _) = manifest.encode()?;
        let Made::Others(found) = self.patience.create(&self.bucket, &name, &bytes)? else { return Ok(true) };
        match Manifest::decode(&found) {
            Ok((other, _)) if (other.slot, other.entry_hash) == (manifest.slot, manifest.entry_hash) => Ok(false),
            Ok(_) => Err(unusable(&self.bucket, &name, "it is of another log; publish to another prefix")),
            Err(error) => Err(unusable(&self.bucket, &name, error)),
        }
    }

    /// Puts all rows as parts of the state after a slot.
    fn dump(&mut self, view: &OriginView, slot: u64) -> Result<Dumped, PublishError> {
        let random = layout::new_random().map_err(StoreError::from)?;
        let (bucket, patience) = (&self.bucket, &mut self.patience);
        let (mut parts, mut bytes, mut failed) = (Vec::new(), 0_u64, None);
        let dumped = view.dump(PART_BYTES, &mut |changes| {
            let mut put = |name: String| -> Result<(PartRef, usize), PublishError> {
                let (encoded, part) = encode_part(name.clone(), &changes)?;
                match patience.create(bucket, &name, &encoded)? {
                    Made::Ours => Ok((part, encoded.len())),
                    Made::Others(_) => Err(unusable(bucket, &name, "somebody else put it")),
                }
            };
            match put(layout::part(slot, &random, parts.len())) {
                Ok((part, length)) => {
                    parts.push(part);
                    bytes += u64::try_from(length).unwrap_or(u64::MAX);
                    Ok(())
                }
                Err(error) => {
                    failed = Some(error);
                    // Only ends the walk.
                    Err(StoreError::damaged("outbox", "a part of a state could not be put"))
                }
            }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        let digest = dumped?;
        if digest != view.digest()? {
            return Err(StoreError::damaged("meta", "the rows do not add up to the digest that is kept of them").into());
        }
        Ok(Dumped { parts, digest, bytes })
    }
}
