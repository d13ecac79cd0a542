// SPDX-License-Identifier: GPL-2.0-or-later
//! Refusals of `perch lab compare`.

use crate::support::{file, refused};

/// The lab compares arms that it understands, on machines that can be guests; it looks at them
/// before it fetches or boots anything.
#[test]
fn arms_of_the_lab_are_read_before_guests_boot() {
    let with = |arm: &str, words: &[&str]| {
        refused(&format!("lab compare -m kunpeng920 --arm '{arm}' -- true"), words);
    };
    with("stock:clusters=off", &["comes after `with`", "stock with clusters=off"]);
    with("stock with clutser=off", &["`clutser=off` changes nothing", "feature=NAME"]);
    with("perch:clutser=perch", &["clutser"]);
    with("a=", &["no scheduler after `a=`"]);
    with("a=stock@", &["no kernel after `stock@`", "`stock@7.2`"]);
    with("a=stock with clusters=off@7.2", &["right behind the scheduler", "`stock@7.2`"]);
    with("new=stock@/no/such/bzImage", &["arm new", "there is no file /no/such/bzImage"]);
    with("new=perch:cluster=perch@seven", &["arm new: kernel seven", "such as 7.2"]);
    let text = file("kernels", "text", "text\n");
    with(&format!("new=stock@{text}"), &["arm new", &text, "it is no kernel"]);
    let with = |rest: &str, words: &[&str]| refused(&format!("lab compare {rest} -- true"), words);
    let unused = "-m kunpeng920 --kernel 6.18 --arm a=stock@7.2";
    with(unused, &["--kernel 6.18", "every arm has one"]);
    let recorded = "-m kunpeng920 --decisions --untimed --arm stock --arm b=perch";
    with(recorded, &["arm b", "--decisions", "leave the arm"]);
    with(&recorded.replace(" --untimed", ""), &["--decisions", "add --untimed"]);
    with("-m juno --arm stock", &["juno", "differ in capacity"]);
    with("-m kunpeng920 --score rate", &["--score", "NAME/UNIT=WORDS"]);
}
