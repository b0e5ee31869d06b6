//! Traffic of a model that is lost before it reaches anybody.

use super::*;

/// A model's bursts overflow the queue of a link that is hardly used. Such traffic did harm nothing, but it is not the
/// model's.
#[test]
fn traffic_that_is_lost_though_there_is_room_shows_no_absence_of_harm() {
    let mut results = results(10, |_, _| 1.0);
    let answer = |of: &Results| {
        let v = Verdict::of(of).foregrounds.remove(0);
        (v.backgrounds[2].matters, full_text(&v))
    };
    let (before, text) = answer(&results);
    assert_eq!(before, Some(Answer::No), "{text}");
    for run in &mut results.runs {
        for link in &mut run.observed.links {
            link.arrived[1] = link.departed[1] * 2;
        }
    }
    let (after, said) = answer(&results);
    assert_eq!(after, Some(Answer::Unclear), "{said}");
    assert!(
        said.contains("of learnt") || said.contains("learnt offered"),
        "{said}"
    );
    assert!(
        said.contains("were carried, though the link had room"),
        "{said}"
    );
}
