//! The view that expressions have of the table `measures`: numbers that the foreground itself reported.

use std::sync::Arc;

use rhai::{Array, Dynamic, Engine, ImmutableString};
use swell_experiment::observe::MeasureSample;
use swell_stats::Ecdf;

/// Maximum number of points of a distribution function: more than a picture has pixels.
pub(super) const CDF: usize = 2000;

/// Rows of the table `measures`, from the end of the warm-up on.
#[derive(Clone)]
pub(super) struct Measures(Arc<Vec<MeasureSample>>);

impl Measures {
    pub(super) fn new(mut rows: Vec<MeasureSample>, warmup: f64) -> Measures {
        rows.retain(|row| row.at >= warmup);
        Measures(Arc::new(rows))
    }

    /// The rows of one measure, in the order of the reports.
    fn rows(&self, name: &str) -> impl Iterator<Item = f64> {
        let own = self.0.iter().filter(move |row| row.measure == name);
        own.map(|row| row.value)
    }

    /// The values of one measure. An unknown name has no values: a run may be too short to report any.
    fn of(&self, name: &str) -> Values {
        Values::new(self.rows(name).collect())
    }
}

/// Values of a measure, round trips, or gaps.
#[derive(Clone)]
pub(super) struct Values(Arc<Ecdf>);

impl Values {
    pub(super) fn new(values: Vec<f64>) -> Values {
        Values(Arc::new(Ecdf::new(values)))
    }

    fn quantile(&self, p: f64) -> f64 {
        self.0.quantile(p.clamp(0.0, 1.0)).unwrap_or(f64::NAN)
    }

    fn within(&self, most: f64) -> f64 {
        if self.0.is_empty() {
            return f64::NAN;
        }
        self.0.cdf(most)
    }

    /// The distribution function as [value, share at or below].
    fn cdf(&self) -> Array {
        let point = |(x, y)| -> Dynamic { vec![Dynamic::from(x), Dynamic::from(y)].into() };
        self.0.points(CDF).into_iter().map(point).collect()
    }
}

/// Registers the types with the expression engine. Statistics of no values are NaN.
pub(super) fn register(engine: &mut Engine) {
    type V = Values;
    engine
        .register_type_with_name::<Measures>("measures")
        .register_fn("of", |m: Measures, name: ImmutableString| m.of(&name))
        .register_fn("list", |m: Measures, name: ImmutableString| -> Array {
            m.rows(&name).map(Dynamic::from).collect()
        })
        .register_type_with_name::<V>("values")
        .register_get("count", |v: &mut V| v.0.len() as f64)
        .register_get("sum", |v: &mut V| {
            v.0.samples().iter().fold(0.0, |sum, x| sum + x)
        })
        .register_get("mean", |v: &mut V| v.0.mean().unwrap_or(f64::NAN))
        .register_get("sd", |v: &mut V| v.0.sd().unwrap_or(f64::NAN))
        .register_get("median", |v: &mut V| v.quantile(0.5))
        .register_get("cdf", |v: &mut V| v.cdf())
        .register_fn("quantile", |v: V, p: f64| v.quantile(p))
        .register_fn("quantile", |v: V, p: i64| v.quantile(p as f64))
        .register_fn("within", |v: V, most: f64| v.within(most))
        .register_fn("within", |v: V, most: i64| v.within(most as f64));
}
