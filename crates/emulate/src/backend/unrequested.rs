//! Data that is in no request.

use swell_base::{Code, Warning};

use super::place::is_client;
use crate::Conversations;

/// A doubt about connections that servers opened, as active FTP does: what they carry is in no request.
pub(super) fn called_back(conversations: &Conversations) -> Option<Warning> {
    let carried = |by_client: bool| -> u64 {
        let all = conversations.connections.iter();
        let own = all.filter(|c| is_client(c.client.0) == by_client);
        own.map(|c| c.bytes.iter().sum::<u64>()).sum()
    };
    let (own, others) = (carried(true), carried(false));
    (others > own).then(|| {
        Warning::warning(
            Code::CalledBack,
            format!("connections that servers opened carried {others} bytes, those of the client {own}: what the former carry is in no request"),
        )
    })
}

/// A doubt about data that servers sent to the client after a long silence, without being asked.
pub(super) fn unasked(conversations: &Conversations) -> Option<Warning> {
    let ours = conversations.connections.iter();
    let times = ours
        .filter(|c| is_client(c.client.0))
        .fold([0u64; 2], |sum, c| {
            [0, 1].map(|i| sum[i] + u64::from(c.unasked[i]))
        });
    if times == [0, 0] {
        return None;
    }
    let cases = |n: u64| match n {
        1 => "once".to_owned(),
        n => format!("{n} times"),
    };
    let [small, more] = times.map(|n| (n > 0).then(|| cases(n)));
    let small = small.map(|n| {
        format!(
            "{n} it was small, as the announcement of a close or a ping is, and is in no request"
        )
    });
    let more =
        more.map(|n| format!("{n} it was more, and was taken for the rest of the answer before"));
    let both: Vec<String> = small.into_iter().chain(more).collect();
    Some(Warning::note(
        Code::UnaskedData,
        format!(
            "servers sent data after a silence of over a second, without a new request: {}",
            both.join("; ")
        ),
    ))
}
