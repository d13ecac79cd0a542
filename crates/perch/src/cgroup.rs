// SPDX-License-Identifier: GPL-2.0-or-later
//! What the kernel says of a cgroup of the second hierarchy.

/// The folder of the root group.
pub const ROOT: &str = "/sys/fs/cgroup";

/// The time in us for which some task waited for a CPU, of a file of pressure.
pub fn some_us(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let words = line.split_whitespace();
    number(words.filter_map(|word| word.strip_prefix("total=")).next()?)
}

/// The time in us that a cgroup has used CPUs, of its cpu.stat.
pub fn usage_us(text: &str) -> Option<f64> {
    number(text.lines().find_map(|line| line.strip_prefix("usage_usec "))?)
}

/// The CPUs that a cgroup may use, of its cpu.max; none without a limit.
pub fn limit(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    Some(number(quota)? / number(period).filter(|&period| period > 0.0)?)
}

/// The number that a text is, spaces around it apart.
pub fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|value: &f64| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_kernel_are_read() {
        let pressure = "some avg10=0.00 avg60=1.50 avg300=0.27 total=123456\n\
                        full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!(some_us(pressure), Some(123_456.0));
        assert_eq!(usage_us("usage_usec 42\nuser_usec 40\n"), Some(42.0));
        assert_eq!(limit("150000 100000\n"), Some(1.5));
        for reads in [some_us, usage_us, limit] {
            for bad in ["", "some total=x\n", "usage_usec \n", "max 100000\n", "5 0\n"] {
                assert_eq!(reads(bad), None, "{bad}");
            }
        }
    }
}
