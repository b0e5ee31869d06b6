//! Measured rates as a background takes them with `match:NAME`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::File;
use crate::kinds::Part;
use crate::store::Measured;

impl File {
    /// `measured`, with the rates that `part` takes from another background. The rate of a background that sends in
    /// windows is that within its windows, but loads are to be equal over a run. So it is multiplied by the share of the
    /// time in which the other one sends, and divided by that of `part`, both after the warm-up.
    pub fn taken<'m>(
        &self,
        part: &Part,
        measured: &'m BTreeMap<String, Measured>,
    ) -> Cow<'m, BTreeMap<String, Measured>> {
        let other = part
            .matches()
            .and_then(|name| self.background.iter().find(|b| b.name() == name));
        let Some((other, known)) = other.and_then(|b| Some((b, measured.get(b.name())?))) else {
            return Cow::Borrowed(measured);
        };
        let share = |of: &Part| of.share(self.run.warmup, self.run.duration);
        let (theirs, own) = (share(other), share(part));
        // A background without a window after the warm-up sends nothing that counts, whatever its rate.
        if theirs == own || own <= 0.0 {
            return Cow::Borrowed(measured);
        }
        let mut taken = measured.clone();
        taken.insert(other.name().to_owned(), known.scaled(theirs / own));
        Cow::Owned(taken)
    }
}
