//! Templates of NetFlow v9 (RFC 3954 section 5.2 and 6.1) and IPFIX (RFC 7011 section 3.4).

use std::collections::BTreeMap;

use super::element::{self, Slot};
use super::{FlowSkip, Limits};

/// A field length that means "variable" (RFC 7011 section 7).
pub(crate) const VARIABLE: u16 = 65_535;

/// The position and use of a field in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub slot: Slot,
    /// Offset from the beginning of the record. It has no meaning after a field of variable length.
    pub at: u16,
    pub len: u16,
}

/// The layout of the records of a set. If all fields have fixed lengths, only useful fields are stored. Fields without
/// length never are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    /// Whether it describes options data.
    pub options: bool,
    pub fields: Box<[Field]>,
    /// Length of a record, or the minimum length if it varies. Never zero.
    pub len: usize,
    /// Whether the length varies.
    pub variable: bool,
}

/// Templates of all domains, by domain number and template number.
#[derive(Debug, Default)]
pub(crate) struct Templates {
    by_id: BTreeMap<(u32, u16), Template>,
    fields: usize,
}

/// The result of storing a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Learned {
    New,
    Repeated,
}

impl Templates {
    pub(crate) fn get(&self, domain: u32, id: u16) -> Option<&Template> {
        self.by_id.get(&(domain, id))
    }

    /// Stores a template, which replaces an earlier one with the same number.
    pub(crate) fn learn(
        &mut self,
        domain: u32,
        id: u16,
        template: Template,
        limits: &Limits,
    ) -> Result<Learned, FlowSkip> {
        let before = self.by_id.get(&(domain, id));
        if before == Some(&template) {
            return Ok(Learned::Repeated);
        }
        let freed = before.map_or(0, |t| t.fields.len() + 1);
        let fields = self.fields - freed + template.fields.len() + 1;
        if fields > limits.fields || (freed == 0 && self.by_id.len() >= limits.templates) {
            return Err(FlowSkip::TemplateLimit);
        }
        self.fields = fields;
        self.by_id.insert((domain, id), template);
        Ok(Learned::New)
    }

    /// Removes a template. Returns whether it existed.
    pub(crate) fn withdraw(&mut self, domain: u32, id: u16) -> bool {
        let gone = self.by_id.remove(&(domain, id));
        self.fields -= gone.as_ref().map_or(0, |t| t.fields.len() + 1);
        gone.is_some()
    }

    /// Removes all templates of a domain, or all its options templates. Returns their number.
    pub(crate) fn withdraw_all(&mut self, domain: u32, options: bool) -> u64 {
        let ids: Vec<u16> = self
            .by_id
            .range((domain, 0)..=(domain, u16::MAX))
            .filter(|(_, t)| t.options == options)
            .map(|((_, id), _)| *id)
            .collect();
        for id in &ids {
            self.withdraw(domain, *id);
        }
        ids.len() as u64
    }
}

/// Reads consecutive field specifiers into a template.
pub(crate) struct Specifiers<'a> {
    bytes: &'a [u8],
    /// Whether the highest bit of a number means that an enterprise number follows (IPFIX).
    enterprises: bool,
    fields: Vec<Field>,
    at: usize,
    variable: bool,
}

impl<'a> Specifiers<'a> {
    pub(crate) fn new(bytes: &'a [u8], enterprises: bool) -> Specifiers<'a> {
        Specifiers {
            bytes,
            enterprises,
            fields: Vec::new(),
            at: 0,
            variable: false,
        }
    }

    /// Reads one specifier; `None` if the bytes end.
    ///
    /// `scope` is for NetFlow v9, whose scopes have a number space of their own (RFC 3954 section 6.1).
    pub(crate) fn field(&mut self, scope: bool) -> Option<()> {
        let (head, mut rest) = self.bytes.split_first_chunk::<4>()?;
        let [a, b, c, d] = *head;
        let (mut id, len) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let mut pen = 0;
        if self.enterprises && id & 0x8000 != 0 {
            let (number, behind) = rest.split_first_chunk::<4>()?;
            (pen, rest) = (u32::from_be_bytes(*number), behind);
            id &= 0x7fff;
        }
        self.bytes = rest;
        let mut slot = match scope {
            true => Slot::Ignore,
            false => element::slot(pen, id),
        };
        if !slot.fits(len) {
            slot = Slot::Ignore;
        }
        // RFC 3954 has no variable lengths, but H3C's exporters use those of IPFIX in version 9.
        let varies = len == VARIABLE;
        self.fields.push(Field {
            slot,
            // `finish` rejects records that are longer than a message.
            at: self.at.min(usize::from(u16::MAX)) as u16,
            len,
        });
        self.variable |= varies;
        // A value of variable length has at least its length byte.
        self.at += if varies { 1 } else { usize::from(len) };
        Some(())
    }

    /// The bytes after the last specifier that was read.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// Completes the template. It is invalid if its records have length zero, or more than a message can hold.
    pub(crate) fn finish(mut self, options: bool) -> Result<Template, FlowSkip> {
        if self.at == 0 || self.at > usize::from(u16::MAX) {
            return Err(FlowSkip::BadTemplate);
        }
        // A field without length, of which a record of one byte could have a thousand, would only take time.
        let variable = self.variable;
        self.fields.retain(|f| match variable {
            true => f.len > 0,
            false => f.slot != Slot::Ignore,
        });
        Ok(Template {
            options,
            fields: self.fields.into(),
            len: self.at,
            variable: self.variable,
        })
    }
}

impl Template {
    /// Passes the fields of the first record of a set to `field`, and returns the bytes after the record. `None` if a
    /// variable length reaches beyond the set, or less than a record is left.
    #[inline]
    pub(crate) fn record<'a>(
        &self,
        set: &'a [u8],
        mut field: impl FnMut(Slot, &'a [u8]),
    ) -> Option<&'a [u8]> {
        if !self.variable {
            let (record, rest) = set.split_at_checked(self.len)?;
            for f in &self.fields {
                // Must not panic: fields are within the sum of their lengths.
                let at = usize::from(f.at);
                field(f.slot, record.get(at..at + usize::from(f.len))?);
            }
            return Some(rest);
        }
        let mut rest = set;
        for f in &self.fields {
            let len = match f.len {
                // One byte, or 255 followed by two bytes (RFC 7011 section 7).
                VARIABLE => {
                    let (&short, behind) = rest.split_first()?;
                    rest = behind;
                    if short == 255 {
                        let (long, beyond) = rest.split_first_chunk::<2>()?;
                        rest = beyond;
                        usize::from(u16::from_be_bytes(*long))
                    } else {
                        usize::from(short)
                    }
                }
                fixed => usize::from(fixed),
            };
            let (value, behind) = rest.split_at_checked(len)?;
            if f.slot != Slot::Ignore {
                field(f.slot, value);
            }
            rest = behind;
        }
        Some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(specifiers: &[(u16, u16)]) -> Result<Template, FlowSkip> {
        let bytes: Vec<u8> = specifiers
            .iter()
            .flat_map(|(id, len)| [id.to_be_bytes(), len.to_be_bytes()])
            .flatten()
            .collect();
        let mut s = Specifiers::new(&bytes, true);
        while s.field(false).is_some() {}
        s.finish(false)
    }

    #[test]
    fn a_fixed_record_gives_what_is_of_use_at_its_place() {
        let t = template(&[(8, 4), (9, 1), (4, 1)]).unwrap();
        assert_eq!((t.len, t.fields.len(), t.variable), (6, 2, false));
        let mut seen = Vec::new();
        let rest = t.record(&[10, 0, 0, 1, 24, 6, 7], |s, v| seen.push((s, v.to_vec())));
        assert_eq!(rest, Some(&[7][..]));
        assert_eq!(seen[1], (Slot::Protocol, vec![6]));
        assert_eq!(t.record(&[0; 5], |_, _| {}), None);
    }

    #[test]
    fn variable_lengths_are_followed_and_never_beyond_the_set() {
        let t = template(&[(82, VARIABLE), (4, 1)]).unwrap();
        assert_eq!((t.len, t.variable), (2, true));
        let mut seen = Vec::new();
        let mut keep = |s: Slot, v: &[u8]| seen.push((s, v.to_vec()));
        assert_eq!(t.record(&[2, b'a', b'b', 17], &mut keep), Some(&[][..]));
        let mut long = vec![255, 1, 0];
        long.extend([0; 256]);
        long.push(6);
        assert_eq!(t.record(&long, &mut keep), Some(&[][..]));
        assert_eq!(t.record(&[9, 1, 2], &mut keep), None);
        assert_eq!(t.record(&[255, 255], &mut keep), None);
        assert_eq!(
            seen,
            [(Slot::Protocol, vec![17]), (Slot::Protocol, vec![6])]
        );
    }

    /// The work for a record is bounded by its bytes.
    #[test]
    fn fields_without_length_take_no_time() {
        let mut fields = vec![(82, 0); 1_000];
        fields.extend([(82, VARIABLE), (4, 1)]);
        let t = template(&fields).unwrap();
        assert_eq!((t.len, t.fields.len()), (2, 2));
        let mut seen = Vec::new();
        let rest = t.record(&[1, b'x', 6], |s, v| seen.push((s, v.to_vec())));
        assert_eq!(rest, Some(&[][..]));
        assert_eq!(seen, [(Slot::Protocol, vec![6])]);
    }

    #[test]
    fn records_without_length_and_beyond_every_message_are_refused() {
        assert_eq!(template(&[]), Err(FlowSkip::BadTemplate));
        assert_eq!(template(&[(1, 0), (2, 0)]), Err(FlowSkip::BadTemplate));
        let long = [(1, 65_000), (2, 1000)];
        assert_eq!(template(&long), Err(FlowSkip::BadTemplate));
    }

    #[test]
    fn what_is_kept_stays_within_its_bounds() {
        let limits = Limits {
            templates: 2,
            fields: 8,
            ..Limits::default()
        };
        let mut all = Templates::default();
        let small = template(&[(8, 4)]).unwrap();
        let large = template(&[(8, 4), (12, 4), (7, 2), (11, 2), (4, 1)]).unwrap();
        assert_eq!(all.learn(0, 256, small.clone(), &limits), Ok(Learned::New));
        assert_eq!(
            all.learn(0, 256, small.clone(), &limits),
            Ok(Learned::Repeated)
        );
        assert_eq!(all.learn(0, 257, large.clone(), &limits), Ok(Learned::New));
        let refused = Err(FlowSkip::TemplateLimit);
        assert_eq!(all.learn(1, 256, small.clone(), &limits), refused);
        assert_eq!(all.learn(0, 256, large, &limits), refused, "fields");
        assert!(all.withdraw(0, 257));
        assert!(!all.withdraw(0, 257));
        assert_eq!(all.learn(1, 256, small, &limits), Ok(Learned::New));
        assert_eq!(all.withdraw_all(0, true), 0);
        assert_eq!(all.withdraw_all(0, false), 1);
        assert_eq!(all.fields, 2);
    }
}
