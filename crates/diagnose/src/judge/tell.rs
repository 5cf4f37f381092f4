//! From a decision to the document: sentences filled, lines quoted, secrets masked.

use shakedown_model::{
    Confidence, Consequence, Covered, DIAGNOSIS_SCHEMA, Diagnosed, DiagnosedState, Diagnosis, Evidence,
    Finding, Fix, RuledOut, StageSeen, Verdict,
};

use super::candidates::{Candidate, Dropped, Folded};
use super::fill::fill;
use super::state::{Decision, Plain};
use super::view::{Argument, View};
use crate::catalog::{Role, Stage};
use crate::log::Level;
use crate::mask::mask;

/// Lines quoted for one explanation.
const QUOTES: usize = 4;
/// Unusual lines shown.
const UNUSUAL: usize = 6;
/// Entries of a list that the document carries.
const LISTED: usize = 24;

impl<'a> View<'a> {
    /// The document of a decision.
    pub(super) fn tell(&self, decision: Decision<'a>, covered: Vec<Covered>) -> Diagnosis {
        let Decision {
            state,
            top,
            plain,
            beside,
            followed,
            dropped,
            benign,
        } = decision;
        let mut findings: Vec<Diagnosed> = Vec::new();
        let top_code = top.as_ref().map(|(top, _)| top.failure.code.clone());
        match (top, plain) {
            (Some((top, confidence)), _) => {
                let mut own = self.diagnosed(&top, confidence, state);
                own.led_to = followed
                    .iter()
                    .take(LISTED)
                    .filter_map(|folded| self.consequence(folded))
                    .collect();
                findings.push(own);
            }
            (None, Some(plain)) => {
                let mut own = self.plain(plain, state);
                own.led_to = followed
                    .iter()
                    .take(LISTED)
                    .filter_map(|folded| self.consequence(folded))
                    .collect();
                findings.push(own);
            }
            (None, None) => {}
        }
        for (candidate, confidence) in beside.iter().take(8) {
            findings.push(self.diagnosed(candidate, *confidence, state));
        }
        let unsure = state == DiagnosedState::Unknown
            || findings
                .first()
                .is_none_or(|first| first.finding.confidence == Confidence::Possible);
        let address = self.server_address().map(|(address, _)| {
            let host = address.host.unwrap_or_default();
            let host = if host.contains(':') {
                format!("[{host}]")
            } else {
                host
            };
            address.port.map_or(host.clone(), |port| format!("{host}:{port}"))
        });
        let verdict = findings
            .first()
            .map_or_else(String::new, |first| first.finding.what.clone());
        Diagnosis {
            schema: DIAGNOSIS_SCHEMA.to_owned(),
            state,
            verdict,
            confidence: findings
                .first()
                .map_or(Confidence::Possible, |first| first.finding.confidence),
            address,
            engine: self.engine.map(|engine| engine.as_str().to_owned()),
            engine_version: self
                .last_observed("engine-version")
                .map(|(_, _, value)| value.to_owned()),
            findings,
            ruled_out: self.ruled_out(dropped, top_code.as_deref()),
            harmless: benign
                .iter()
                .take(LISTED)
                .filter_map(|candidate| {
                    Some(Consequence {
                        code: candidate.failure.code.clone(),
                        title: candidate.failure.title.clone(),
                        evidence: self.quote_event(candidate.events.first()?),
                        count: candidate.count(),
                    })
                })
                .collect(),
            stages: self.stages_seen(),
            unusual: if unsure { self.unusual() } else { Vec::new() },
            look_next: if unsure { self.look_next() } else { Vec::new() },
            tail: self.tail(),
            covered,
        }
    }

    fn ruled_out(&self, dropped: Vec<Dropped<'a>>, top: Option<&str>) -> Vec<RuledOut> {
        let mut list: Vec<RuledOut> = Vec::new();
        for drop in dropped {
            let benign = drop.failure.role == Role::Benign;
            if benign
                || Some(drop.failure.code.as_str()) == top
                || drop.reason.is_empty()
                || list.len() >= LISTED
            {
                continue;
            }
            let mut evidence: Vec<Evidence> = drop.evidence.into_iter().collect();
            evidence.extend(drop.first.map(|placed| self.quote_event(&placed)));
            list.push(RuledOut {
                code: drop.failure.code.clone(),
                title: drop.failure.title.clone(),
                reason: self.words(&drop.reason, &[]),
                evidence,
            });
        }
        list
    }

    fn consequence(&self, folded: &Folded<'a>) -> Option<Consequence> {
        Some(Consequence {
            code: folded.failure.code.clone(),
            title: folded.failure.title.clone(),
            evidence: self.quote_event(folded.first.as_ref()?),
            count: folded.count,
        })
    }

    fn words(&self, template: &str, captures: &[(String, String)]) -> String {
        let text = fill(template, &|name| self.lookup(name, captures));
        mask(&text).into_owned()
    }

    /// What a placeholder stands for: a named group, a sign, an argument, a fact, an observation.
    fn lookup(&self, name: &str, captures: &[(String, String)]) -> Option<String> {
        let tidy = |text: &str| {
            let text: String = text
                .trim()
                .trim_end_matches(['.', ','])
                .chars()
                .take(240)
                .collect();
            (!text.is_empty()).then_some(text)
        };
        if let Some((_, value)) = captures
            .iter()
            .find(|(known, value)| known == name && !value.trim().is_empty())
        {
            return tidy(value);
        }
        if let Some(argument) = name.strip_prefix("arg.") {
            return match self.argument(argument) {
                Argument::Given(value) => tidy(&value),
                Argument::Absent | Argument::NotKnown => None,
            };
        }
        if let Some(package) = name.strip_prefix("package.") {
            return self
                .facts
                .package(package)
                .and_then(|(_, version)| tidy(&version));
        }
        if let Some(path) = name.strip_prefix("fact.") {
            return self.facts.get(path).next().and_then(|fact| tidy(&fact.text));
        }
        if let Ok(sign) = toml::Value::String(name.to_owned()).try_into::<super::Sign>()
            && let Some(text) = self.sign_text(sign)
        {
            return tidy(&text);
        }
        match name {
            "engine" => self.engine.map(|engine| engine.title().to_owned()),
            "server.host" => self.server_address().and_then(|(address, _)| address.host),
            "server.port" => self
                .server_address()
                .and_then(|(address, _)| address.port)
                .map(|port| port.to_string()),
            "client.host" => self.client_targets().pop().and_then(|(address, _)| address.host),
            "client.port" => self
                .client_targets()
                .pop()
                .and_then(|(address, _)| address.port)
                .map(|port| port.to_string()),
            _ => self.last_observed(name).and_then(|(_, _, value)| tidy(value)),
        }
    }

    fn diagnosed(
        &self,
        candidate: &Candidate<'a>,
        confidence: Confidence,
        state: DiagnosedState,
    ) -> Diagnosed {
        let failure = candidate.failure;
        let captures = &candidate.captures;
        let what = self.words(&failure.what, captures);
        let first = candidate.events.first();
        let verdict = match (failure.role, state) {
            (Role::Benign, _) | (_, DiagnosedState::StillLoading) => Verdict::Info,
            (Role::NotInForce, _) | (_, DiagnosedState::Impaired) => Verdict::Warn,
            (_, DiagnosedState::UpElsewhere) => Verdict::Ok,
            (_, DiagnosedState::Unknown) => Verdict::Unknown,
            _ => Verdict::Fail,
        };
        let mut finding = Finding::new(failure.code.clone(), verdict, self.subject(), what.clone())
            .why(self.words(&failure.why, captures))
            .confidence(confidence);
        for placed in candidate.events.iter().take(QUOTES) {
            finding.evidence.push(self.quote_event(placed));
        }
        // What the same story said first, such as the exception from which this one was raised.
        for folded in candidate
            .folded
            .iter()
            .filter(|folded| matches!(folded.failure.role, Role::Cause | Role::Symptom))
        {
            if let Some(placed) = folded
                .first
                .as_ref()
                .filter(|placed| placed.order < candidate.order())
                && finding.evidence.len() < QUOTES
            {
                let own = self.quote_event(placed);
                if !finding.evidence.contains(&own) {
                    finding.evidence.push(own);
                }
            }
        }
        for (_, evidence) in candidate.confirmed.iter().take(QUOTES) {
            if !finding.evidence.contains(evidence) {
                finding.evidence.push(evidence.clone());
            }
        }
        finding.fixes = failure
            .fixes
            .iter()
            .map(|fix| Fix {
                text: self.words(&fix.text, captures),
                command: fix.run.as_deref().map(|command| self.words(command, captures)),
                applicability: fix.risk,
            })
            .collect();
        finding.verify = failure
            .verify
            .as_deref()
            .map(|command| self.words(command, captures));
        Diagnosed {
            finding,
            family: failure.family.clone(),
            class: failure.class.clone(),
            cause: what,
            provenance: Some(failure.known),
            process: first.and_then(|placed| placed.event.proc.as_ref()?.label()),
            time: first.and_then(|placed| placed.event.stamp.clone()),
            stage: first
                .and_then(|placed| self.stage_at(placed.order))
                .map(|stage| stage.words().to_owned()),
            led_to: Vec::new(),
        }
    }

    fn plain(&self, plain: Plain, state: DiagnosedState) -> Diagnosed {
        let _ = state;
        let mut finding = Finding::new(plain.code, plain.verdict, self.subject(), plain.what.clone())
            .why(plain.why)
            .confidence(plain.confidence);
        finding.evidence = plain.evidence;
        Diagnosed {
            finding,
            family: plain.family,
            class: plain.class,
            cause: plain.what,
            provenance: None,
            process: None,
            time: None,
            stage: self
                .stages
                .iter()
                .rfind(|stage| stage.mark.stage != Stage::Stopping)
                .map(|stage| stage.mark.stage.words().to_owned()),
            led_to: Vec::new(),
        }
    }

    fn subject(&self) -> String {
        match self.engine {
            Some(engine) => format!("{} server", engine.title()),
            None => "server".to_owned(),
        }
    }

    fn stages_seen(&self) -> Vec<StageSeen> {
        let mut seen: Vec<(Stage, StageSeen)> = Vec::new();
        for stage in &self.stages {
            let evidence = self.quote(
                stage.log,
                stage.hit.last_line.max(stage.hit.line),
                &stage.hit.text,
            );
            match seen.iter_mut().find(|(known, _)| *known == stage.mark.stage) {
                Some((_, known)) => {
                    known.ended |= stage.mark.end;
                    known.evidence = evidence;
                }
                None => seen.push((
                    stage.mark.stage,
                    StageSeen {
                        stage: stage.mark.stage.name().to_owned(),
                        ended: stage.mark.end,
                        evidence,
                    },
                )),
            }
        }
        seen.into_iter().map(|(_, stage)| stage).collect()
    }

    /// The lines that stand out most, in the order of the log.
    fn unusual(&self) -> Vec<Evidence> {
        let total = self.events.len().max(1);
        let mut scored: Vec<(i64, usize)> = Vec::new();
        for (at, placed) in self.events.iter().enumerate() {
            let roles: Vec<Role> = placed
                .event
                .hits
                .iter()
                .filter_map(|hit| Some(self.failure(hit.entry)?.role))
                .collect();
            if roles.contains(&Role::Benign) {
                continue;
            }
            let mut score = match placed.event.level {
                Some(Level::Fatal) => 5,
                Some(Level::Error) => 4,
                Some(Level::Warn) => 2,
                Some(Level::Debug | Level::Info) => 0,
                None => 1,
            };
            score += if placed.event.said.is_some() { 5 } else { 0 };
            score -= if roles.contains(&Role::Cascade) { 3 } else { 0 };
            score -= i64::from(placed.event.count > 3);
            // Of two alike, the later one is nearer to the end that is to be explained.
            score = score * 100 + (at * 100 / total) as i64;
            scored.push((score, at));
        }
        scored.sort_unstable_by(|a, b| b.cmp(a));
        let mut chosen: Vec<usize> = scored.into_iter().take(UNUSUAL).map(|(_, at)| at).collect();
        chosen.sort_unstable();
        chosen
            .into_iter()
            .filter_map(|at| Some(self.quote_event(self.events.get(at)?)))
            .collect()
    }

    /// What would decide, given what is not known.
    fn look_next(&self) -> Vec<String> {
        use crate::facts::key;
        let mut next: Vec<String> = Vec::new();
        let mut add = |text: &str| next.push(text.to_owned());
        if !self.facts.has(key::EXIT) && !self.facts.has(key::PROCESSES) {
            add(
                "whether the process still lives, and how it ended: `ps -ef`, the exit status of the unit or container",
            );
        }
        if !self.facts.has(key::KERNEL) {
            add(
                "the kernel's messages around that time: `dmesg -T | grep -iE 'oom|killed process|xid|segfault'`",
            );
        }
        match self.stages.last().map(|stage| stage.mark.stage) {
            Some(Stage::Distributed) => {
                add("the collective library's own words: start again with `NCCL_DEBUG=INFO`");
            }
            Some(Stage::LoadingWeights | Stage::Downloading) => {
                add("whether the load moves: `iostat -x 5`, the size of the model's directory, `df -h`");
            }
            Some(Stage::Compiling | Stage::CapturingGraphs | Stage::WarmingUp) => {
                add(
                    "what the process does: `py-spy dump --pid PID`, running `nvcc`, `ninja` or `ptxas` children",
                );
            }
            _ => {}
        }
        if !self.facts.has(key::GPU) {
            add("the GPUs: `nvidia-smi`, for memory in use by other processes and for errors");
        }
        next.truncate(4);
        next
    }

    fn tail(&self) -> Vec<Evidence> {
        let mut lines: Vec<Evidence> = Vec::new();
        let each = if self.logs.len() > 1 { 4 } else { 12 };
        for (log, scanned) in self.logs.iter().enumerate().take(8) {
            let skip = scanned.launch.tail.len().saturating_sub(each);
            for (line, text) in scanned.launch.tail.iter().skip(skip) {
                lines.push(self.quote(log, *line, text));
            }
        }
        lines
    }
}
