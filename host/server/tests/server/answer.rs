//! What a host answers, and what a test expects of it.

use serde_json::Value;
use ureq::{Body, http::Response};

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) retry_after: Option<String>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn of(mut response: Response<Body>) -> Self {
        let header = |name| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let (content_type, retry_after) = (header("content-type").unwrap_or_default(), header("retry-after"));
        let status = response.status().as_u16();
        Self { status, content_type, retry_after, body: response.body_mut().read_to_string().unwrap() }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The answer to a request that went well.
    pub(crate) fn ok(self) -> Value {
        assert_eq!((self.status, &*self.content_type), (200, "application/json"), "{self:?}");
        self.json()
    }

    /// The answer to a command that was accepted.
    pub(crate) fn accepted(self) -> Value {
        let answer = self.ok();
        assert_eq!(answer["outcome"], "accepted");
        answer
    }

    /// The answer to a command that its handler refused.
    pub(crate) fn rejected(self, code: &str) -> Value {
        let answer = self.json();
        self.problem(422, "rejected");
        assert_eq!((&answer["outcome"], &answer["code"]), (&"rejected".into(), &code.into()));
        answer
    }

    /// The detail of a problem of this kind.
    pub(crate) fn problem(self, status: u16, kind: &str) -> String {
        assert_eq!((self.status, &*self.content_type), (status, "application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["type"], format!("urn:weir:problem:{kind}"), "{problem}");
        assert_eq!(problem["status"], status, "{problem}");
        assert!(problem["title"].as_str().is_some_and(|title| !title.is_empty()), "{problem}");
        problem["detail"].as_str().unwrap().to_owned()
    }
}

/// Fails unless `text` has all of the parts.
pub(crate) fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in: {text}");
    }
    assert!(!text.trim_end().contains('\n'), "more than one line: {text}");
}
