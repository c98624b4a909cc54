//! The top-level modules of `src` ("rooms"), from the top down as in `src/lib.rs`: each needs only
//! modules below it.

use std::fs;

use super::checked::files;
use super::root;

/// The most entries that a reader should find in `src`.
const MOST: usize = 14;

/// The code of a file, without comments and without its tests, which may use any module.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    text.lines().filter(is_code).collect::<Vec<_>>().join("\n")
}

#[test]
fn each_room_needs_only_those_below_it() {
    let src = root().join("src").canonicalize().unwrap();
    let front = fs::read_to_string(src.join("lib.rs")).unwrap();
    let declared = front.lines().filter_map(|line| {
        let name = line.strip_prefix("pub mod ").or(line.strip_prefix("mod "));
        name?.strip_suffix(';')
    });
    let rooms: Vec<_> = declared.collect();
    // The entries of `src` are the modules and `lib.rs`.
    assert_eq!(fs::read_dir(&src).unwrap().count(), rooms.len() + 1);
    assert!(rooms.len() < MOST, "{rooms:?}");
    let mut paths = 0;
    for (place, room) in rooms.iter().enumerate() {
        for file in files(&src.join(room), "rs") {
            let code = code(&fs::read_to_string(&file).unwrap());
            let included = code.split("include_str!(\"").skip(1);
            let included = included.map(|rest| rest.split('"').next().unwrap());
            for path in included.filter(|path| path.ends_with(".sql")) {
                let included = file.parent().unwrap().join(path).canonicalize().unwrap();
                let needed = rooms
                    .iter()
                    .position(|room| included.starts_with(src.join(room)));
                assert!(
                    needed.is_none_or(|needed| needed >= place),
                    "{}: {room} includes {path}",
                    file.display()
                );
            }
            for path in code.split("crate::").skip(1) {
                let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
                let name = path.split(|c| !is_of_name(c)).next().unwrap();
                let needed = rooms.iter().position(|room| *room == name);
                let file = file.display();
                // Code names an item by the module that defines it, not by its re-export in
                // `lib.rs`, which is above all modules.
                let needed =
                    needed.unwrap_or_else(|| panic!("{file}: `crate::{name}` is not a room"));
                assert!(
                    needed >= place,
                    "{file}: {room} is below {name}, and needs it"
                );
                paths += 1;
            }
        }
    }
    assert!(paths > 1000, "{paths}");
}
