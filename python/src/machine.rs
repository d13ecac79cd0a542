// SPDX-License-Identifier: GPL-2.0-or-later
//! The machines and the workloads that perch knows.

use pyo3::prelude::*;

use crate::error::of_machine;

/// A machine: its name, and how its CPUs hang together.
#[pyclass(module = "perch", frozen)]
pub struct Machine(pub perch_machine::Machine);

#[pymethods]
impl Machine {
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// A sentence about the machine.
    #[getter]
    fn description(&self) -> &str {
        &self.0.description
    }

    /// The number of CPUs.
    #[getter]
    fn cpus(&self) -> usize {
        self.0.cpus.len()
    }

    /// The number of cores.
    #[getter]
    fn cores(&self) -> usize {
        self.0.cores()
    }

    /// The number of clusters; 0 where cores share nothing below the LLC.
    #[getter]
    fn clusters(&self) -> usize {
        self.0.clusters()
    }

    /// The number of last-level caches.
    #[getter]
    fn llcs(&self) -> usize {
        self.0.llcs()
    }

    /// The number of NUMA nodes.
    #[getter]
    fn nodes(&self) -> usize {
        self.0.nodes()
    }

    /// The whole machine in the format of a machine's file.
    #[getter]
    fn toml(&self) -> String {
        self.0.to_toml()
    }

    fn __repr__(&self) -> String {
        format!(
            "<perch.Machine {}: {} CPUs, {} LLCs, {} NUMA nodes>",
            self.0.name,
            self.0.cpus.len(),
            self.0.llcs(),
            self.0.nodes()
        )
    }
}

/// Returns the names of the library's machines.
#[pyfunction]
pub fn machines() -> Vec<&'static str> {
    perch_machine::library::names().collect()
}

/// Returns the machine of that name, or the one in the file at that path.
#[pyfunction]
pub fn machine(name_or_path: &str) -> PyResult<Machine> {
    let found = perch_machine::resolve(name_or_path).map_err(of_machine)?;
    Ok(Machine(found))
}

/// Returns the workloads: the name, and a line about the workload and its keys.
#[pyfunction]
pub fn workloads() -> Vec<(&'static str, &'static str)> {
    perch_workload::names()
}
