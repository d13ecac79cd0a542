// SPDX-License-Identifier: GPL-2.0-or-later
//! Conditions between axes, which leave combinations out: `workload.n <= 2 * cpus`.

use toml::Value;

use crate::error::ExperimentError;

/// The name of the machine's number of CPUs in a condition.
const CPUS: &str = "cpus";

/// One comparison.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    text: String,
    left: Term,
    sign: &'static str,
    right: Term,
}

/// Longer ones first: `<` is the beginning of `<=`.
const SIGNS: [&str; 6] = ["<=", ">=", "==", "!=", "<", ">"];

#[derive(Clone, Debug)]
enum Term {
    Number(f64),
    Text(String),
    /// An axis or the number of CPUs, times a factor.
    Name(f64, String),
}

impl Condition {
    /// Reads a condition on the axes `known`.
    pub fn parse(text: &str, known: &[&str], origin: &str) -> Result<Condition, ExperimentError> {
        let refused = |reason: String| {
            let reason = format!("`{text}`: {reason}");
            ExperimentError::key(origin, "conditions", reason)
        };
        let found = SIGNS.iter().find_map(|&sign| Some((sign, text.split_once(sign)?)));
        let Some((sign, (left, right))) = found else {
            return Err(refused("expected TERM <= TERM, or with <, >=, >, == or !=".to_string()));
        };
        let term = |text: &str| Term::parse(text.trim(), known, &refused);
        Ok(Condition { text: text.to_string(), left: term(left)?, sign, right: term(right)? })
    }

    /// Returns true where the condition holds. `read` returns the value of an axis.
    pub fn holds(
        &self,
        read: &dyn Fn(&str) -> Option<Value>,
        cpus: usize,
        origin: &str,
    ) -> Result<bool, ExperimentError> {
        let value = |term: &Term| match term {
            Term::Number(number) => Value::Float(*number),
            Term::Text(text) => Value::String(text.clone()),
            Term::Name(factor, name) if name == CPUS => Value::Float(factor * cpus as f64),
            Term::Name(factor, name) => match read(name) {
                Some(Value::Integer(number)) => Value::Float(factor * number as f64),
                Some(Value::Float(number)) => Value::Float(factor * number),
                Some(value) => value,
                None => Value::Boolean(false),
            },
        };
        let (left, right) = (value(&self.left), value(&self.right));
        let order = match (&left, &right) {
            (Value::Float(left), Value::Float(right)) => left.partial_cmp(right),
            (Value::String(left), Value::String(right)) if ["==", "!="].contains(&self.sign) => {
                Some(left.cmp(right))
            }
            _ => None,
        };
        let Some(order) = order else {
            let reason = format!(
                "`{}` compares {left} with {right}: expected two numbers, or == of two texts",
                self.text
            );
            return Err(ExperimentError::key(origin, "conditions", reason));
        };
        Ok(match self.sign {
            "<=" => order.is_le(),
            ">=" => order.is_ge(),
            "==" => order.is_eq(),
            "!=" => order.is_ne(),
            "<" => order.is_lt(),
            _ => order.is_gt(),
        })
    }
}

impl Term {
    fn parse(
        text: &str,
        known: &[&str],
        refused: &dyn Fn(String) -> ExperimentError,
    ) -> Result<Term, ExperimentError> {
        if let Some(inner) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
            return Ok(Term::Text(inner.to_string()));
        }
        if let Ok(number) = text.parse::<f64>()
            && number.is_finite()
        {
            return Ok(Term::Number(number));
        }
        let (factor, name) = match text.split_once('*') {
            Some((factor, name)) => (factor.trim(), name.trim()),
            None => ("1", text),
        };
        let factor: f64 =
            (factor.parse()).map_err(|_| refused(format!("`{factor}` is not a number")))?;
        if name != CPUS && !known.contains(&name) {
            return Err(refused(format!(
                "`{name}` is not an axis of this sweep: expected {}, {CPUS}, a number or a \"text\"",
                known.join(", ")
            )));
        }
        Ok(Term::Name(factor, name.to_string()))
    }
}
