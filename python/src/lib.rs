// SPDX-License-Identifier: GPL-2.0-or-later
//! The part of perch's Python package that is written in Rust: `perch._perch`. No function holds the
//! interpreter's lock while it simulates. docs/python.md tells how to use the package.

mod compare;
mod error;
mod machine;
mod recording;
mod replay;
mod rows;
mod simulate;
mod store;
mod sweep;
mod table;
mod wake_ups;

use pyo3::prelude::*;

/// The number of threads that simulate where the caller has not said another.
fn threads(jobs: Option<usize>) -> usize {
    jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1)
}

#[pymodule]
fn _perch(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("MODEL", perch_experiment::MODEL)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<compare::Comparison>()?;
    module.add_class::<machine::Machine>()?;
    module.add_class::<recording::Recording>()?;
    module.add_class::<rows::Rows>()?;
    module.add_class::<store::Store>()?;
    module.add_class::<sweep::Sweep>()?;
    module.add_class::<table::Table>()?;
    module.add_function(wrap_pyfunction!(compare::compare, module)?)?;
    module.add_function(wrap_pyfunction!(machine::machine, module)?)?;
    module.add_function(wrap_pyfunction!(machine::machines, module)?)?;
    module.add_function(wrap_pyfunction!(machine::workloads, module)?)?;
    module.add_function(wrap_pyfunction!(replay::replay, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::key, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::simulate_json, module)?)?;
    Ok(())
}
