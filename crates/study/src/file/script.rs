//! The expressions of study files: the language Rhai without access to the machine.
//!
//! A study file may come from an untrusted source. Expressions cannot read files, load modules or read clocks.
//! Operations and memory are limited; exceeding a limit is an error.

use std::collections::BTreeMap;
use std::sync::Arc;

use rhai::packages::{
    ArithmeticPackage, BasicArrayPackage, BasicFnPackage, BasicIteratorPackage, BasicMapPackage,
    BasicMathPackage, BasicStringPackage, LogicPackage, MoreStringPackage, Package,
};
use rhai::{
    AST, Dynamic, Engine, EvalAltResult, FnPtr, ImmutableString, Map, NativeCallContext, Scope,
};

use crate::Estimate;
use crate::words::{percent, share, thousands};

/// Operations per expression: thousands of times what a rule needs, yet a fraction of a second.
const OPERATIONS: u64 = 2_000_000;
/// Limits on the elements of a list, the entries of a map and the characters of a text.
const LIST: usize = 20_000;
const ENTRIES: usize = 100_000;
const TEXT: usize = 100_000;
/// Limit on live variables. Together with the sizes above it bounds the memory.
const VARIABLES: usize = 128;

/// What is wrong with an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It needs runs or numbers that do not exist.
    NotThere(String),
    /// It is wrong.
    Wrong(String),
}

/// Thrown by functions that find no run.
#[derive(Clone)]
struct NotThere(String);

type Result<T> = std::result::Result<T, Box<EvalAltResult>>;

/// A parser and interpreter with the functions that every expression knows.
pub(super) fn engine() -> Engine {
    let mut engine = Engine::new_raw();
    // The standard package without clocks, sleeping, blobs and bit operations.
    for package in [
        ArithmeticPackage::new().as_shared_module(),
        LogicPackage::new().as_shared_module(),
        BasicMathPackage::new().as_shared_module(),
        BasicStringPackage::new().as_shared_module(),
        MoreStringPackage::new().as_shared_module(),
        BasicArrayPackage::new().as_shared_module(),
        BasicMapPackage::new().as_shared_module(),
        BasicIteratorPackage::new().as_shared_module(),
        BasicFnPackage::new().as_shared_module(),
    ] {
        engine.register_global_module(package);
    }
    engine
        .set_max_operations(OPERATIONS)
        .set_max_expr_depths(64, 32)
        .set_max_call_levels(32)
        .set_max_variables(VARIABLES)
        .set_max_functions(64)
        .set_max_array_size(LIST)
        .set_max_map_size(ENTRIES)
        .set_max_string_size(TEXT)
        .set_max_strings_interned(256)
        .set_fail_on_invalid_map_property(true)
        .disable_symbol("eval")
        .disable_symbol("print")
        .disable_symbol("debug");
    estimates(&mut engine);
    seeds(&mut engine);
    words(&mut engine);
    choices(&mut engine);
    refusals(&mut engine);
    engine
}

/// Stores functions in an engine; every expression that it compiles may call them.
pub(super) fn know(engine: &mut Engine, functions: &AST) {
    // The default tag is Rhai's slot for data of the embedding program.
    engine.set_default_tag(Dynamic::from(functions.clone()));
}

/// Compiles an expression or statements.
pub(super) fn compile(engine: &Engine, text: &str) -> std::result::Result<AST, Trouble> {
    let ast = engine.compile(text).map_err(|e| {
        let place = place(e.position(), text);
        Trouble::Wrong(format!("{}{place}", e.err_type()))
    })?;
    let functions = engine.default_tag().read_lock::<AST>();
    Ok(functions.map_or_else(|| ast.clone(), |functions| functions.merge(&ast)))
}

/// The value of an expression.
pub(super) fn value(
    engine: &Engine,
    ast: &AST,
    scope: &mut Scope<'_>,
    text: &str,
) -> std::result::Result<Dynamic, Trouble> {
    let result: Result<Dynamic> = engine.eval_ast_with_scope(scope, ast);
    result.map_err(|e| trouble(*e, text))
}

fn trouble(error: EvalAltResult, text: &str) -> Trouble {
    let position = error.position();
    match error {
        EvalAltResult::ErrorRuntime(thrown, _) if thrown.is::<NotThere>() => {
            Trouble::NotThere(thrown.cast::<NotThere>().0)
        }
        EvalAltResult::ErrorInFunctionCall(_, _, inner, _) => trouble(*inner, text),
        EvalAltResult::ErrorPropertyNotFound(name, _) => Trouble::Wrong(format!(
            "nothing here is called `{name}`{}",
            place(position, text)
        )),
        EvalAltResult::ErrorVariableNotFound(name, _) => Trouble::Wrong(format!(
            "nothing here is called `{name}`{}",
            place(position, text)
        )),
        EvalAltResult::ErrorTooManyOperations(_) => {
            Trouble::Wrong(format!("it takes more than {OPERATIONS} steps"))
        }
        EvalAltResult::ErrorFunctionNotFound(what, _) => Trouble::Wrong(format!(
            "no such function: {}{}",
            readable(&what),
            place(position, text)
        )),
        mut other => {
            other.clear_position();
            Trouble::Wrong(format!("{other}{}", place(position, text)))
        }
    }
}

/// Replaces Rust type names by those of the documentation.
fn readable(signature: &str) -> String {
    let mut text = signature.to_owned();
    for (from, to) in [
        ("f64", "number"),
        ("i64", "number"),
        ("&str | ImmutableString | String", "text"),
    ] {
        text = text.replace(from, to);
    }
    text
}

/// A position in words, for a text of one or several lines.
fn place(position: rhai::Position, text: &str) -> String {
    match (position.line(), position.position()) {
        (Some(line), Some(column)) if text.trim().contains('\n') => {
            format!(", in line {line} of the expression, at character {column}")
        }
        (Some(_), Some(column)) => format!(", at character {column} of the expression"),
        _ => String::new(),
    }
}

/// The error for runs that do not exist, which is not a fault of the expression.
pub(super) fn not_there<T>(what: impl Into<String>) -> Result<T> {
    let thrown = Dynamic::from(NotThere(what.into()));
    Err(EvalAltResult::ErrorRuntime(thrown, rhai::Position::NONE).into())
}

/// The error for a fault of the expression.
pub(super) fn wrong<T>(what: impl Into<String>) -> Result<T> {
    Err(what.into().into())
}

/// The number in a value of any numeric type.
pub(super) fn number(value: &Dynamic) -> Option<f64> {
    if let Ok(x) = value.as_float() {
        return Some(x);
    }
    value.as_int().ok().map(|n| n as f64)
}

/// The boolean that a rule, a condition or a filter returns.
pub(super) fn truth(value: &Dynamic) -> std::result::Result<bool, Trouble> {
    let wrong = |kind| format!("a {kind} is not an answer: write what is true or false");
    value.as_bool().map_err(|kind| Trouble::Wrong(wrong(kind)))
}

/// An estimate, or a number as an estimate without interval.
pub(super) fn estimate(value: &Dynamic) -> Option<Estimate> {
    let known = value.clone().try_cast::<Estimate>();
    known.or_else(|| number(value).map(Estimate::exact))
}

/// Arithmetic of estimates: exact with a number, assuming independence with another estimate.
fn estimates(engine: &mut Engine) {
    engine
        .register_type_with_name::<Estimate>("estimate")
        .register_get("mean", |e: &mut Estimate| e.value)
        .register_get("low", |e: &mut Estimate| e.low())
        .register_get("high", |e: &mut Estimate| e.high())
        .register_get("sd", |e: &mut Estimate| e.sd.unwrap_or(f64::NAN))
        .register_get("n", |e: &mut Estimate| e.n as f64)
        .register_fn("/", |a: Estimate, b: Estimate| a.over(&b))
        .register_fn("-", |a: Estimate, b: Estimate| a.plus(&b.map(|x| -x)))
        .register_fn("+", |a: Estimate, b: Estimate| a.plus(&b))
        .register_fn("-", |a: Estimate| a.map(|x| -x))
        .register_fn("abs", |a: Estimate| a.value.abs())
        // The interval of a mean logarithm becomes that of the geometric mean.
        .register_fn("exp", |a: Estimate| a.map(f64::exp))
        // `a` with the interval a - b to a + b, for example a deviation instead of the interval of the mean.
        .register_fn("spread", |a: Estimate, b: Estimate| Estimate {
            interval: Some([a.value - b.value, a.value + b.value]),
            ..a
        });
    macro_rules! with {
        ($kind:ty) => {
            engine
                .register_fn("+", |a: Estimate, b: $kind| a.map(|x| x + b as f64))
                .register_fn("+", |b: $kind, a: Estimate| a.map(|x| x + b as f64))
                .register_fn("-", |a: Estimate, b: $kind| a.map(|x| x - b as f64))
                .register_fn("-", |b: $kind, a: Estimate| a.map(|x| b as f64 - x))
                .register_fn("*", |a: Estimate, b: $kind| a.map(|x| x * b as f64))
                .register_fn("*", |b: $kind, a: Estimate| a.map(|x| x * b as f64))
                .register_fn("/", |a: Estimate, b: $kind| a.map(|x| x / b as f64));
        };
    }
    with!(f64);
    with!(i64);
    // Rhai answers false when types differ. Here that would be a wrong verdict, so it is an error.
    macro_rules! compared {
        ($a:ty, $b:ty) => {
            for operator in ["<", "<=", ">", ">=", "==", "!="] {
                engine.register_fn(operator, |_: $a, _: $b| -> Result<bool> {
                    wrong("an estimate is not compared: compare its .mean, .low or .high")
                });
            }
        };
    }
    compared!(Estimate, f64);
    compared!(f64, Estimate);
    compared!(Estimate, i64);
    compared!(i64, Estimate);
    compared!(Estimate, Estimate);
}

/// The numbers of a combination, seed by seed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Seeds(pub Arc<BTreeMap<String, Vec<f64>>>);

fn seeds(engine: &mut Engine) {
    engine
        .register_type_with_name::<Seeds>("seeds")
        // The mean of numbers that an expression has for each seed, with its interval.
        .register_fn("over_seeds", |list: rhai::Array| {
            let values: Option<Vec<f64>> = list.iter().map(number).collect();
            match values.map(Estimate::of) {
                Some(Some(mean)) => Ok(mean),
                Some(None) => not_there("no seed has a number"),
                None => wrong("over_seeds takes a list of numbers, one for each seed"),
            }
        })
        .register_fn("of", |seeds: Seeds, name: ImmutableString| {
            match seeds.0.get(name.as_str()) {
                Some(values) => Ok(values.iter().copied().map(Dynamic::from).collect()),
                None => wrong::<rhai::Array>(format!("no measure is called `{name}`")),
            }
        });
}

/// Numbers as the page writes them.
fn words(engine: &mut Engine) {
    engine
        .register_fn("share", |e: Estimate| share(e.value))
        .register_fn("share", share)
        .register_fn("percent", |e: Estimate| percent(e.value))
        .register_fn("percent", percent)
        .register_fn("thousands", |e: Estimate| thousands(e.value))
        .register_fn("thousands", thousands)
        // All numbers are floating-point; print 60, not 60.0.
        .register_fn("to_string", |x: f64| x.to_string())
        .register_fn("list", |parts: rhai::Array| {
            let parts: Vec<String> = parts.iter().map(Dynamic::to_string).collect();
            parts.join(", ")
        })
        .register_fn("digits", |x: f64, n: i64| digits(x, n))
        .register_fn("digits", |e: Estimate, n: i64| digits(e.value, n));
}

fn digits(x: f64, n: i64) -> String {
    format!("{x:.*}", n.clamp(0, 12) as usize)
}

/// Functions that choose the run with the minimum or maximum of a number.
fn choices(engine: &mut Engine) {
    type List = rhai::Array;
    engine
        .register_fn("least", |runs: List, name: ImmutableString| {
            pick(&runs, false, |run| named(run, &name))
        })
        .register_fn("most", |runs: List, name: ImmutableString| {
            pick(&runs, true, |run| named(run, &name))
        })
        .register_fn(
            "least",
            |context: NativeCallContext<'_>, runs: List, f: FnPtr| {
                pick(&runs, false, |run| asked(&context, &f, run))
            },
        )
        .register_fn(
            "most",
            |context: NativeCallContext<'_>, runs: List, f: FnPtr| {
                pick(&runs, true, |run| asked(&context, &f, run))
            },
        );
}

/// Lets a rule declare that it cannot be evaluated: `untested("why")`.
fn refusals(engine: &mut Engine) {
    engine.register_fn("untested", |why: ImmutableString| not_there::<()>(why));
}

fn named(run: &Dynamic, name: &str) -> Result<f64> {
    let Some(found) = run
        .read_lock::<Map>()
        .and_then(|map| map.get(name).cloned())
    else {
        return wrong(format!("runs have no `{name}`"));
    };
    ranked(&found)
}

fn asked(context: &NativeCallContext<'_>, f: &FnPtr, run: &Dynamic) -> Result<f64> {
    ranked(&f.call_within_context::<Dynamic>(context, (run.clone(),))?)
}

fn ranked(found: &Dynamic) -> Result<f64> {
    match estimate(found) {
        Some(e) => Ok(e.value),
        None => wrong(format!(
            "{} is not a number to choose by",
            found.type_name()
        )),
    }
}

/// Picks the first on ties. NaN is never chosen.
fn pick(runs: &[Dynamic], most: bool, f: impl Fn(&Dynamic) -> Result<f64>) -> Result<Dynamic> {
    let mut best: Option<(f64, &Dynamic)> = None;
    for run in runs {
        let x = f(run)?;
        let better = best.is_none_or(|(y, _)| if most { x > y } else { x < y });
        if better && !x.is_nan() {
            best = Some((x, run));
        }
    }
    match best {
        Some((_, run)) => Ok(run.clone()),
        None => not_there("no run to choose from"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(text: &str) -> std::result::Result<Dynamic, Trouble> {
        let engine = engine();
        let ast = compile(&engine, text)?;
        value(&engine, &ast, &mut Scope::new(), text)
    }

    fn wrong(text: &str) -> String {
        match ask(text) {
            Err(Trouble::Wrong(why)) => why,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn nothing_of_the_machine_is_in_reach() {
        for text in [
            "import \"/etc/passwd\" as x; 1",
            "eval(\"1\")",
            "open(\"/etc/passwd\")",
            "sleep(1e9)",
            "timestamp()",
            "fn f() { f() } f()",
        ] {
            assert!(matches!(ask(text), Err(Trouble::Wrong(_))), "{text}");
        }
    }

    #[test]
    fn what_does_not_end_is_ended() {
        assert!(wrong("loop {}").contains("steps"));
        assert!(wrong("let n = 0; while true { n += 1 } n").contains("steps"));
        for bomb in [
            "let s = \"x\"; loop { s += s }",
            "let a = [0]; loop { a += a }",
            "let a = [0]; loop { a = [a, a] }",
            "let a = []; a.pad(1000000000, 0); 1",
        ] {
            assert!(matches!(ask(bomb), Err(Trouble::Wrong(_))), "{bomb}");
        }
        let deep = format!("{}1{}", "(".repeat(5000), ")".repeat(5000));
        assert!(matches!(ask(&deep), Err(Trouble::Wrong(_))));
    }

    #[test]
    fn errors_say_where() {
        assert!(
            wrong("1 + * 2").contains("at character"),
            "{}",
            wrong("1 + * 2")
        );
        assert!(
            wrong("1 + lost").contains("`lost`, at character 5"),
            "{}",
            wrong("1 + lost")
        );
        assert!(wrong("let a = 1;\na + lost").contains("in line 2"));
    }

    #[test]
    fn estimates_compute_with_their_intervals() {
        let engine = engine();
        let mut scope = Scope::new();
        scope.push("a", Estimate::known(2.0, 1.0, 4));
        let mut get = |text: &str| {
            let ast = compile(&engine, text).unwrap();
            number(&value(&engine, &ast, &mut scope, text).unwrap()).unwrap()
        };
        // t(0.975; 3) = 3.1824, half = 3.1824 / 2.
        assert!((get("(a * 2 - 1).low") - (3.0 - 3.1824)).abs() < 1e-3);
        assert!((get("(1 - a).high") - (-1.0 + 1.5912)).abs() < 1e-3);
        assert!((get("(a / a).mean") - 1.0).abs() < 1e-12);
        // Half-widths of independent estimates add in quadrature.
        assert!((get("(a + a).high") - (4.0 + 1.5912 * 2f64.sqrt())).abs() < 1e-3);
        // The ends are those of the logarithm, each as a factor.
        assert!((get("exp(a).mean") - 2f64.exp()).abs() < 1e-12);
        assert!((get("exp(a).high") / get("exp(a).mean") - 1.5912f64.exp()).abs() < 1e-3);
        // Mean 3 and half-width 1.9632 of five seeds.
        assert!((get("over_seeds([1, 2.0, 3, 4, 5]).high") - 4.963_2).abs() < 1e-4);
        assert_eq!(get("most([#{x: 1}, #{x: 3.5}, #{x: 2}], \"x\").x"), 3.5);
        assert_eq!(get("least([#{x: 1}, #{x: 3}], |r| -r.x).x"), 3.0);
    }
}
