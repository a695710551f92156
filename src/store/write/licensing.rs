//! Changing licenses and keys.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use ipnet::IpNet;
use serde::Serialize;

use super::edit::{Edit, LicenseEffect};
use super::records::{create_feed, erase_feed, load_entries};
use crate::model::key::new_key_id;
use crate::model::license::DEFAULT_RATE_LIMIT;
use crate::model::{
    ApiKey, Dataset, FeedId, Id, KeyHash, KeyRecord, KeyStatus, License, LicenseId, PerDataset,
    RecordFields, Scope, Subscription, Timestamp, with_fields,
};
use crate::store::format::feed::FeedEntry;
use crate::store::format::rows::{
    CLOCK_TOLERANCE_S, RecordRow, for_each_record, load_keys, seal, seal_under,
};
use crate::store::format::tables::{KEYS, LICENSES, LOG, RECORDS};
use crate::store::{Result, StoreError};

/// The effects of a change of a license.
#[derive(Serialize)]
pub struct LicenseChange {
    /// Whether the license is new.
    pub created: bool,
    /// If so, older sync tokens get 410.
    pub scope_changed: bool,
    /// Whether its rate limit is another one now.
    pub rate_limit_changed: bool,
    /// The records that enter and leave, per dataset in the old or new scope.
    pub effects: Vec<LicenseEffect>,
    /// The losses that need a confirmation, such as `21 of 200 conferences`: a whole dataset, or more than ten records
    /// and a tenth of a dataset.
    pub losses: Vec<String>,
}

/// The settings of a new key.
#[derive(Clone, Default)]
pub struct KeySettings {
    /// The operator's note.
    pub label: Option<String>,
    /// The time from which the key is rejected.
    pub expires_at: Option<Timestamp>,
    /// The networks that may use it; empty for all.
    pub allowed_ips: Vec<IpNet>,
}

/// The records in a scope by id, with the time of their last change and their log seq.
type VisibleRecords = BTreeMap<Id, (Timestamp, u64)>;

impl Edit<'_> {
    /// Replaces the scope of a license, or creates the license. The same scope again changes nothing. The feed first
    /// gets the entering records by (`updated_at`, id), then the leaving records by id.
    pub fn set_license(
        &mut self,
        name: &str,
        scope: Scope,
        rate_limit: Option<u32>,
    ) -> Result<LicenseChange> {
        let stored = self.find_license(name).cloned();
        let created = stored.is_none();
        let mut license = match stored {
            Some(license) => license,
            None => License {
                id: LicenseId(getrandom::u64()?),
                name: name.to_owned(),
                scope: Scope::nothing(),
                rate_limit: DEFAULT_RATE_LIMIT,
                scope_seq: 0,
                subscriptions: PerDataset::default(),
                created_at: self.commit.time,
            },
        };
        let rate_limit = rate_limit.unwrap_or(license.rate_limit);
        let mut change = LicenseChange {
            created,
            scope_changed: created || license.scope != scope,
            rate_limit_changed: !created && license.rate_limit != rate_limit,
            effects: Vec::new(),
            losses: Vec::new(),
        };
        if !change.scope_changed && !change.rate_limit_changed {
            return Ok(change);
        }
        license.rate_limit = rate_limit;
        if change.scope_changed {
            let before = self.commit.last_seq;
            for dataset in Dataset::ALL {
                let concerned =
                    license.scope.datasets.contains(&dataset) || scope.datasets.contains(&dataset);
                let (effect, of) =
                    with_fields!(dataset, F => self.rescope::<F>(&mut license, &scope)?);
                let leaving = effect.leaving;
                let is_large = leaving > 10 && leaving.saturating_mul(10) > of;
                if is_large || leaving > 0 && leaving == of {
                    change.losses.push(format!("{leaving} of {of} {dataset}"));
                }
                change.effects.extend(concerned.then_some(effect));
            }
            if self.commit.last_seq == before {
                self.take_seq();
            }
            license.scope = scope;
            license.scope_seq = self.commit.last_seq;
        } else {
            self.take_seq();
        }
        self.put_license(license)?;
        Ok(change)
    }

    /// Moves a license to the feed of its new scope, and writes its new baseline. Also returns the number of records
    /// that it showed before.
    fn rescope<F: RecordFields>(
        &mut self,
        license: &mut License,
        scope: &Scope,
    ) -> Result<(LicenseEffect, u64)> {
        let dataset = F::DATASET;
        let mut effect = LicenseEffect::none(license.name.clone(), dataset);
        if license.scope.shows_same(scope, dataset) {
            return Ok((effect, 0));
        }
        let visible = if scope.datasets.contains(&dataset) {
            self.visible_records::<F>(scope)?
        } else {
            VisibleRecords::new()
        };
        let before = license.subscriptions[dataset];
        let mut entries = load_entries(&self.tx, dataset, before)?;
        let shown = entries.values().filter(|entry| entry.is_live()).count() as u64;
        self.change_entries(&mut entries, &visible, &mut effect);
        if let Some(Subscription { baseline, .. }) = before {
            erase_feed(&self.tx, baseline)?;
        }
        self.leave_feed(license, dataset)?;
        let baseline = FeedId(self.take_seq());
        create_feed(&self.tx, baseline, dataset, entries.into_values().collect())?;
        let feed = self.join_feed(license.id, scope, dataset, visible)?;
        license.subscriptions[dataset] = Some(Subscription {
            feed,
            joined_at: self.commit.last_seq,
            baseline,
        });
        Ok((effect, shown))
    }

    /// Gives new entries to the records that enter, by (`updated_at`, id), then to those that leave, by id.
    fn change_entries(
        &mut self,
        entries: &mut BTreeMap<Id, FeedEntry>,
        visible: &VisibleRecords,
        effect: &mut LicenseEffect,
    ) {
        let entering = visible
            .iter()
            .filter(|(id, _)| !entries.get(id).is_some_and(FeedEntry::is_live));
        let mut entering: Vec<(Timestamp, Id, u64)> = entering
            .map(|(id, (updated_at, log_seq))| (*updated_at, *id, *log_seq))
            .collect();
        entering.sort_unstable();
        let leaving = entries
            .values()
            .filter(|entry| entry.is_live() && !visible.contains_key(&entry.id));
        let leaving: Vec<Id> = leaving.map(|entry| entry.id).collect();
        effect.entering = entering.len() as u64;
        effect.leaving = leaving.len() as u64;
        let entering = entering
            .into_iter()
            .map(|(_, id, log_seq)| (id, NonZeroU64::new(log_seq)));
        for (id, log_seq) in entering.chain(leaving.into_iter().map(|id| (id, None))) {
            let seq = self.take_seq();
            entries.insert(id, FeedEntry { seq, id, log_seq });
        }
    }

    /// Returns the feed of all licenses that show the records of a scope, and creates it if there is none. `None` if
    /// the scope lacks the dataset.
    fn join_feed(
        &mut self,
        license: LicenseId,
        scope: &Scope,
        dataset: Dataset,
        visible: VisibleRecords,
    ) -> Result<Option<FeedId>> {
        if !scope.datasets.contains(&dataset) {
            return Ok(None);
        }
        let others = self.licenses.iter().filter(|other| other.id != license);
        let shared = others
            .filter(|other| other.scope.shows_same(scope, dataset))
            .find_map(|other| other.feed(dataset));
        if shared.is_some() {
            return Ok(shared);
        }
        let feed = FeedId(self.take_seq());
        let entries = visible.into_iter().map(|(id, (_, seq))| FeedEntry {
            seq,
            id,
            log_seq: NonZeroU64::new(seq),
        });
        create_feed(&self.tx, feed, dataset, entries.collect())?;
        Ok(Some(feed))
    }

    /// The records in a scope, with the time of their last change and their log seq.
    fn visible_records<F: RecordFields>(&self, scope: &Scope) -> Result<VisibleRecords> {
        let mut visible = VisibleRecords::new();
        let records = self.tx.open(RECORDS)?;
        let log = self.tx.open(LOG)?;
        for_each_record(&*records, &*log, |row: RecordRow<F>| {
            if row.record.fields().is_in(scope) {
                visible.insert(row.record.id(), (row.updated_at, row.seq));
            }
            Ok::<_, StoreError>(())
        })?;
        Ok(visible)
    }

    /// Removes a license from its shared feed. Erases the feed if no other license uses it.
    fn leave_feed(&mut self, license: &License, dataset: Dataset) -> Result<()> {
        let Some(left) = license.feed(dataset) else {
            return Ok(());
        };
        let others = self.licenses.iter().filter(|other| other.id != license.id);
        let is_shared = others
            .into_iter()
            .any(|other| other.feed(dataset) == Some(left));
        if is_shared {
            Ok(())
        } else {
            erase_feed(&self.tx, left)
        }
    }

    fn put_license(&mut self, license: License) -> Result<()> {
        let bytes = seal(&license)?;
        self.tx
            .open(LICENSES)?
            .insert(license.id.0, bytes.as_slice())?;
        self.licenses.retain(|other| other.id != license.id);
        self.licenses.push(license);
        self.licenses
            .sort_by(|one, other| one.name.cmp(&other.name));
        Ok(())
    }

    /// Removes a license and its feeds, and revokes its keys. Returns the number of keys that were usable.
    pub fn remove_license(&mut self, name: &str) -> Result<usize> {
        let found = self.find_license(name).cloned();
        let license = found.ok_or_else(|| StoreError::NoSuchLicense(name.to_owned()))?;
        for dataset in Dataset::ALL {
            if let Some(subscription) = license.subscriptions[dataset] {
                erase_feed(&self.tx, subscription.baseline)?;
            }
            self.leave_feed(&license, dataset)?;
        }
        self.tx.open(LICENSES)?.remove(license.id.0)?;
        self.licenses.retain(|other| other.id != license.id);
        let mut revoked = 0;
        for (hash, mut key) in self.load_keys()? {
            // Also revoke expired keys: no key may belong to a license that does not exist.
            if key.license == license.id
                && key
                    .revoked_at
                    .is_none_or(|revoked| revoked > self.commit.time)
            {
                revoked += usize::from(
                    key.status_after(self.began_at, self.commit.time)
                        .is_usable(),
                );
                key.revoked_at = Some(self.commit.time);
                self.put_key(&hash, &key)?;
            }
        }
        self.take_seq();
        Ok(revoked)
    }

    /// Creates a key for a license. Its plain text is returned, but not stored.
    pub fn create_key(
        &mut self,
        license: &str,
        settings: KeySettings,
    ) -> Result<(ApiKey, KeyRecord)> {
        let license = self
            .find_license(license)
            .ok_or_else(|| StoreError::NoSuchLicense(license.to_owned()))?;
        let record = KeyRecord {
            id: new_key_id()?,
            label: settings.label,
            license: license.id,
            license_name: license.name.clone(),
            created_at: self.commit.time,
            expires_at: settings.expires_at,
            allowed_ips: settings.allowed_ips,
            revoked_at: None,
            replaced_by: None,
        };
        let key = ApiKey::generate()?;
        self.put_key(&key.hash(), &record)?;
        self.take_seq();
        Ok((key, record))
    }

    /// Revokes a key from now on.
    pub fn revoke_key(&mut self, id: &str) -> Result<KeyRecord> {
        let (hash, mut key) = self.find_key(id)?;
        if key.status_after(self.began_at, self.commit.time) == KeyStatus::Revoked {
            return Err(StoreError::KeyOutOfUse {
                id: id.to_owned(),
                status: "revoked",
            });
        }
        key.revoked_at = Some(self.commit.time);
        self.put_key(&hash, &key)?;
        self.take_seq();
        Ok(key)
    }

    /// Creates a key with the settings of another. The other key stays usable for `overlap_s` seconds. Fails if the
    /// clock is behind the last commit, because an overlap would begin at the time of that commit.
    pub fn replace_key(&mut self, id: &str, overlap_s: i64) -> Result<(ApiKey, KeyRecord)> {
        let (hash, mut old) = self.find_key(id)?;
        let status = old.status_after(self.began_at, self.commit.time);
        if status != KeyStatus::Active {
            return Err(StoreError::KeyOutOfUse {
                id: id.to_owned(),
                status: status.as_str(),
            });
        }
        let until = self.commit.time.plus_s(overlap_s);
        let behind_s = self.clock_behind_s();
        if overlap_s > 0 && behind_s > CLOCK_TOLERANCE_S {
            return Err(StoreError::LongOverlap {
                id: id.to_owned(),
                until,
                behind_s,
            });
        }
        let record = KeyRecord {
            id: new_key_id()?,
            created_at: self.commit.time,
            ..old.clone()
        };
        let key = ApiKey::generate()?;
        old.revoked_at = Some(until);
        old.replaced_by = Some(record.id.clone());
        self.put_key(&hash, &old)?;
        self.put_key(&key.hash(), &record)?;
        self.take_seq();
        Ok((key, record))
    }

    fn find_key(&self, id: &str) -> Result<(KeyHash, KeyRecord)> {
        self.load_keys()?
            .into_iter()
            .find(|(_, key)| key.id == id)
            .ok_or_else(|| StoreError::NoSuchKey(id.to_owned()))
    }

    fn load_keys(&self) -> Result<Vec<(KeyHash, KeyRecord)>> {
        load_keys(&*self.tx.open(KEYS)?)
    }

    fn put_key(&self, hash: &KeyHash, key: &KeyRecord) -> Result<()> {
        self.tx
            .open(KEYS)?
            .insert(hash.0, seal_under(&hash.0, key)?.as_slice())?;
        Ok(())
    }
}
