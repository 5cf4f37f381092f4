//! Editable installations: what git would say of the checkout, said without git, and nothing of it run.

use std::path::Path;
use std::process::Command;

use shakedown_model::StackCheckout;
use shakedown_stack::Options;

use super::support::Env;

fn git(tree: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .arg("-C")
        .arg(tree)
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            "-c",
            "commit.gpgsign=false",
            "-c",
            "tag.gpgsign=false",
        ])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git");
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A repository with twenty files in two directories, tagged, and one commit after the tag.
fn repository(tree: &Path) {
    std::fs::create_dir_all(tree.join("pkg/sub")).unwrap();
    git(tree, &["init", "-q", "-b", "main"]);
    for i in 0..10 {
        std::fs::write(
            tree.join(format!("pkg/m{i}.py")),
            format!("value = {i}\n").repeat(50),
        )
        .unwrap();
        std::fs::write(tree.join(format!("pkg/sub/n{i}.py")), format!("other = {i}\n")).unwrap();
    }
    std::fs::write(tree.join(".gitignore"), "*.pyc\nbuild/\n").unwrap();
    git(tree, &["add", "."]);
    git(tree, &["commit", "-q", "-m", "First"]);
    git(tree, &["tag", "-a", "v1.0", "-m", "release"]);
    std::fs::write(tree.join("pkg/m0.py"), "value = 'local'\n").unwrap();
    git(tree, &["commit", "-q", "-a", "-m", "Local change"]);
}

fn read(env: &Env, tree: &Path) -> (StackCheckout, super::support::Read) {
    env.pure("sglang", "1.0", "");
    let direct = format!(
        "{{\"url\": \"file://{}\", \"dir_info\": {{\"editable\": true}}}}",
        tree.display()
    );
    std::fs::write(env.site().join("sglang-1.0.dist-info/direct_url.json"), direct).unwrap();
    let read = env.read(
        &[],
        Options {
            sm: vec![120],
            ..Options::default()
        },
    );
    (read.reading.stack.checkouts[0].clone(), read)
}

fn expect(tree: &Path, checkout: &StackCheckout) {
    assert_eq!(
        checkout.head.as_deref(),
        Some(git(tree, &["rev-parse", "HEAD"]).as_str())
    );
    assert_eq!(checkout.branch.as_deref(), Some("main"));
    assert_eq!(checkout.tag.as_deref(), Some("v1.0"));
    let ahead: u64 = git(tree, &["rev-list", "--count", "v1.0..HEAD"]).parse().unwrap();
    assert_eq!(checkout.ahead, Some(ahead));
    let mut dirty: Vec<String> = git(tree, &["diff", "--name-only", "HEAD"])
        .lines()
        .map(str::to_owned)
        .collect();
    dirty.sort();
    let ours: Vec<&str> = checkout.dirty.iter().map(|c| c.path.as_str()).collect();
    assert_eq!(ours, dirty);
    let untracked: Vec<String> = git(
        tree,
        &["ls-files", "--others", "--exclude-standard", "--directory"],
    )
    .lines()
    .map(str::to_owned)
    .collect();
    assert_eq!(checkout.untracked, untracked);
    for line in git(tree, &["diff", "--numstat", "HEAD"]).lines() {
        let mut fields = line.split('\t');
        let (added, removed, path) = (
            fields.next().unwrap(),
            fields.next().unwrap(),
            fields.next().unwrap(),
        );
        let change = checkout.dirty.iter().find(|c| c.path == path).unwrap();
        if change.added.is_some() {
            assert_eq!(
                (change.added, change.removed),
                (added.parse().ok(), removed.parse().ok()),
                "{path}"
            );
        }
    }
}

#[test]
fn two_dirty_one_untracked_one_commit() {
    let env = Env::new();
    let tree = env.dir.path().join("src");
    repository(&tree);
    std::fs::write(tree.join("pkg/m1.py"), "value = 'edited'\n").unwrap();
    std::fs::write(tree.join("pkg/sub/n2.py"), "other = 2\nmore = 3\n").unwrap();
    std::fs::write(tree.join("pkg/new.py"), "x\n").unwrap();
    std::fs::write(tree.join("pkg/skip.pyc"), "x\n").unwrap();
    std::fs::create_dir(tree.join("build")).unwrap();
    std::fs::write(tree.join("build/out"), "x\n").unwrap();
    let (checkout, read) = read(&env, &tree);
    expect(&tree, &checkout);
    assert_eq!(checkout.dirty.len(), 2);
    assert_eq!(checkout.untracked, ["pkg/new.py"]);
    assert_eq!(checkout.commits_after_tag.len(), 1);
    assert!(checkout.commits_after_tag[0].ends_with("Local change"));
    let finding = read.of("stack-checkout")[0];
    for word in ["1 commit after v1.0", "pkg/m1.py", "pkg/sub/n2.py", "pkg/new.py"] {
        assert!(finding.what.contains(word), "{word}: {}", finding.what);
    }
}

#[test]
fn packed_staged_merged_and_tagged_lightly() {
    let env = Env::new();
    let tree = env.dir.path().join("src");
    repository(&tree);
    git(&tree, &["checkout", "-q", "-b", "side"]);
    std::fs::write(tree.join("pkg/m3.py"), "value = 'side'\n").unwrap();
    git(&tree, &["commit", "-q", "-a", "-m", "Side"]);
    git(&tree, &["checkout", "-q", "main"]);
    std::fs::write(tree.join("pkg/m4.py"), "value = 'main'\n").unwrap();
    git(&tree, &["commit", "-q", "-a", "-m", "Main"]);
    git(&tree, &["merge", "-q", "--no-edit", "side"]);
    // Everything into one pack with deltas, refs too.
    git(&tree, &["gc", "-q", "--aggressive", "--prune=now"]);
    git(&tree, &["pack-refs", "--all"]);
    std::fs::write(tree.join("pkg/m5.py"), "value = 5\n".repeat(49) + "end\n").unwrap();
    git(&tree, &["add", "pkg/m5.py"]);
    std::fs::remove_file(tree.join("pkg/m6.py")).unwrap();
    std::fs::create_dir(tree.join("notes")).unwrap();
    std::fs::write(tree.join("notes/a.txt"), "x\n").unwrap();
    let (checkout, _) = read(&env, &tree);
    expect(&tree, &checkout);
    assert_eq!(checkout.ahead, Some(4));
    assert_eq!(checkout.untracked, ["notes/"]);
}

#[test]
fn nothing_in_it_is_run() {
    let env = Env::new();
    let tree = env.dir.path().join("src");
    repository(&tree);
    let proof = env.dir.path().join("ran");
    let command = format!("touch {}", proof.display());
    for (key, value) in [
        ("core.fsmonitor", command.as_str()),
        ("core.pager", &command),
        ("core.hooksPath", "hooks"),
        ("filter.evil.clean", &command),
        ("diff.external", &command),
        ("core.sshCommand", &command),
    ] {
        git(&tree, &["config", key, value]);
    }
    std::fs::write(tree.join(".gitattributes"), "*.py filter=evil diff=evil\n").unwrap();
    std::fs::write(tree.join("pkg/m1.py"), "edited\n").unwrap();
    let (checkout, _) = read(&env, &tree);
    assert_eq!(checkout.dirty.len(), 1);
    assert!(!proof.exists(), "a configured program was run");
}

#[test]
fn a_damaged_repository_is_a_word_and_no_crash() {
    let env = Env::new();
    let tree = env.dir.path().join("src");
    repository(&tree);
    std::fs::write(tree.join(".git/index"), b"DIRC\0\0\0\x02\xff\xff\xff\xff").unwrap();
    std::fs::write(tree.join(".git/HEAD"), "ref: refs/heads/../../../../etc/passwd\n").unwrap();
    std::fs::write(tree.join(".git/packed-refs"), "zzz\n^zzz\n").unwrap();
    let (checkout, read) = read(&env, &tree);
    assert_eq!(checkout.head, None);
    assert!(
        read.reading.stack.unread.iter().any(|u| u.why.contains("index")),
        "{:?}",
        read.reading.stack.unread
    );
}
