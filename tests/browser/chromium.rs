//! A headless Chromium, driven by WebDriver.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use fantoccini::error::{CmdError, ErrorStatus};
use fantoccini::wd::{WebDriverCompatibleCommand, WindowHandle};
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::process::site::{Process, wait_until_every};

/// The time limit of a test's waits: a loaded machine is slow, and edits of the demo come every few seconds.
const TIME_LIMIT: Duration = Duration::from_secs(60);
const POLL_EVERY: Duration = Duration::from_millis(40);

/// The names of Chromium's program.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
/// The program without windows. It takes half of the processor time, and cannot open a given profile.
const SHELLS: [&str; 2] = ["chromium-headless-shell", "chrome-headless-shell"];
/// Debian's folder of the programs. Its `chromium-headless-shell` in PATH is a script, which starts the program as a
/// child. The driver would end only the script, and the program would run for ever.
const DEBIAN_FOLDER: &str = "/usr/lib/chromium";

fn find_program(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

/// The programs of the driver and of a browser.
fn find_programs(has_profile: bool) -> Result<(PathBuf, PathBuf), &'static str> {
    let named = std::env::var_os("MEDFEED_CHROMEDRIVER")
        .filter(|path| !path.is_empty())
        .map(PathBuf::from);
    let driver = named
        .or_else(|| find_program("chromedriver"))
        .ok_or("no chromedriver was found")?;
    let of_debian = |name| Some(Path::new(DEBIAN_FOLDER).join(name)).filter(|path| path.is_file());
    let find_shell = |name| of_debian(name).or_else(|| find_program(name));
    let shell = SHELLS.into_iter();
    let shell = shell.filter(|_| !has_profile).find_map(find_shell);
    let browser = shell
        .or_else(|| BROWSERS.into_iter().find_map(find_program))
        .ok_or("no Chromium was found")?;
    Ok((driver, browser))
}

/// axe-core, where it is there.
pub fn find_axe() -> Option<String> {
    let path = std::env::var_os("MEDFEED_AXE").filter(|path| !path.is_empty())?;
    Some(
        std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("MEDFEED_AXE: {path:?}: {error}")),
    )
}

/// A command of the Chromium driver, besides those of WebDriver.
#[derive(Debug)]
struct Vendor(&'static str, Value);

impl WebDriverCompatibleCommand for Vendor {
    fn endpoint(
        &self,
        base: &url::Url,
        session: Option<&str>,
    ) -> Result<url::Url, url::ParseError> {
        base.join(&format!(
            "session/{}/{}",
            session.unwrap_or_default(),
            self.0
        ))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(self.1.to_string()))
    }
}

/// The rules of axe-core for a check.
#[derive(Clone, Copy, Debug)]
pub enum Rules {
    None,
    All,
    Contrast,
}

/// Whether another element would have received the click.
fn is_intercepted(error: &CmdError) -> bool {
    matches!(error, CmdError::Standard(problem) if problem.error == ErrorStatus::ElementClickIntercepted)
}

/// Starts the driver of the browser. Returns its port, or `None` if it ends.
fn start_driver(program: &Path) -> Option<(Process, String)> {
    let mut command = Command::new(program);
    let mut driver = Process::spawn(
        command
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null()),
    );
    let stdout = BufReader::new(driver.child().stdout.take().unwrap());
    let mut lines = stdout.lines().map(Result::unwrap);
    let port = lines.find_map(|line| {
        Some(
            line.split_once("successfully on port ")?
                .1
                .trim_end_matches('.')
                .to_owned(),
        )
    })?;
    // Read its later output too, or a full pipe stops it.
    std::thread::spawn(move || lines.for_each(drop));
    Some((driver, port))
}

/// Polls until `ask` returns a value. Each poll costs the browser as much time as the pause between two.
pub fn wait_until<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    wait_until_every(POLL_EVERY, what, TIME_LIMIT, ask)
}

/// A browser with one page.
pub struct Browser {
    client: Client,
    runtime: Runtime,
    _driver: Process,
}

impl Browser {
    /// Starts a browser; `None`, with a message, where there is none.
    pub fn start() -> Option<Browser> {
        Browser::start_with_profile(None)
    }

    /// Starts a browser with the profile in a folder, which it makes if there is none.
    pub fn start_with_profile(profile: Option<&Path>) -> Option<Browser> {
        let (program, browser) = match find_programs(profile.is_some()) {
            Ok(programs) => programs,
            Err(why) => {
                eprintln!("the test is left out: {why}; install chromium and chromium-driver");
                return None;
            }
        };
        // The driver takes a free port of IPv4, and ends if another program has it for IPv6.
        let (driver, port) = (0..5)
            .find_map(|_| start_driver(&program))
            .expect("the driver prints its port");
        let fixed = words![
            "--headless=new" "--no-sandbox" "--disable-dev-shm-usage" "--disable-gpu" "--window-size=1366,900"
        ];
        let profile = profile.map(|folder| format!("--user-data-dir={}", folder.display()));
        let arguments = fixed.map(str::to_owned).into_iter();
        let arguments: Vec<String> = arguments.chain(profile).collect();
        let wanted = json!({
            "goog:chromeOptions": {"args": arguments, "binary": browser},
            "goog:loggingPrefs": {"browser": "ALL"},
            // A script of axe takes seconds, and half a minute next to a busy build.
            "timeouts": {"script": 300_000},
        });
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let client = runtime.block_on(async {
            let Value::Object(wanted) = wanted else {
                unreachable!()
            };
            let mut builder = ClientBuilder::new(HttpConnector::new());
            builder
                .capabilities(wanted)
                .connect(&format!("http://127.0.0.1:{port}"))
                .await
                .expect("a session")
        });
        Some(Browser {
            client,
            runtime,
            _driver: driver,
        })
    }

    pub fn go(&self, url: &str) {
        self.runtime.block_on(self.client.goto(url)).unwrap();
    }

    /// The present tab.
    pub fn tab(&self) -> WindowHandle {
        self.runtime.block_on(self.client.window()).unwrap()
    }

    /// Opens a tab, and goes to it.
    pub fn new_tab(&self) -> WindowHandle {
        let handle = self
            .runtime
            .block_on(self.client.new_window(true))
            .unwrap()
            .handle;
        self.switch_to(&handle);
        handle
    }

    pub fn switch_to(&self, tab: &WindowHandle) {
        self.runtime
            .block_on(self.client.switch_to_window(tab.clone()))
            .unwrap();
    }

    /// Runs a script before those of each page that is opened from now on.
    pub fn before_each_page(&self, script: &str) {
        let command = "Page.addScriptToEvaluateOnNewDocument";
        self.devtools(command, json!({"source": script}));
    }

    pub fn back(&self) {
        self.runtime.block_on(self.client.back()).unwrap();
    }

    /// Shows another view of the page.
    pub fn view(&self, fragment: &str) {
        self.js_with("location.hash = arguments[0]", &[json!(fragment)]);
    }

    /// Runs a script. Returns its result.
    pub fn js(&self, script: &str) -> Value {
        self.js_with(script, &[])
    }

    /// Runs a script with arguments.
    pub fn js_with(&self, script: &str, arguments: &[Value]) -> Value {
        self.runtime
            .block_on(self.client.execute(script, arguments.to_vec()))
            .unwrap_or_else(|e| panic!("{script}: {e}"))
    }

    /// Runs a script that passes its result to a function, its last argument.
    pub fn js_async(&self, script: &str) -> Value {
        self.runtime
            .block_on(self.client.execute_async(script, vec![]))
            .unwrap()
    }

    /// Waits until a script returns something that is true.
    pub fn wait_for_js(&self, what: &str, script: &str) -> Value {
        wait_until(what, || {
            let found = self.js(script);
            (found != Value::Null && found != Value::Bool(false)).then_some(found)
        })
    }

    /// Waits for an element, by XPath.
    pub fn wait_for(&self, path: &str) -> fantoccini::elements::Element {
        let wait = self.client.wait().at_most(TIME_LIMIT).every(POLL_EVERY);
        let found = self
            .runtime
            .block_on(wait.for_element(Locator::XPath(path)));
        found.unwrap_or_else(|error| {
            panic!(
                "{path}: {error}: {}",
                self.js("return document.body.innerText")
            )
        })
    }

    pub fn text(&self, path: &str) -> String {
        let element = self.wait_for(path);
        self.runtime.block_on(element.text()).unwrap()
    }

    /// Clicks an element. Looks it up again if the page is redrawn under the pointer.
    pub fn click(&self, path: &str) {
        wait_until(path, || {
            let element = self.wait_for(path);
            match self.runtime.block_on(element.click()) {
                Ok(()) => Some(()),
                Err(error) if error.is_stale_element_reference() => None,
                // The driver scrolls it below the toolbar, which stays in sight.
                Err(error) if is_intercepted(&error) => {
                    let center = "document.evaluate(arguments[0], document, null, 9).singleNodeValue?.scrollIntoView({block: 'center'})";
                    self.js_with(center, &[json!(path)]);
                    None
                }
                Err(error) => panic!("{path}: {error}"),
            }
        });
    }

    /// Replaces the content of a field.
    pub fn fill(&self, path: &str, text: &str) {
        let element = self.wait_for(path);
        self.runtime.block_on(async {
            element.clear().await.unwrap();
            element.send_keys(text).await.unwrap();
        });
    }

    /// Types into the element that has the focus.
    pub fn type_keys(&self, keys: &str) {
        self.runtime.block_on(async {
            self.client
                .active_element()
                .await
                .unwrap()
                .send_keys(keys)
                .await
                .unwrap();
        });
    }

    /// A command of the developer tools. Returns its result.
    pub fn devtools(&self, command: &str, parameters: Value) -> Value {
        let body = json!({"cmd": command, "params": parameters});
        self.runtime
            .block_on(self.client.issue_cmd(Vendor("goog/cdp/execute", body)))
            .unwrap()
    }

    /// The names of all elements of a role, as a screen reader says them.
    pub fn names(&self, role: &str) -> Vec<String> {
        let root = &self.devtools("DOM.getDocument", json!({}))["root"]["backendNodeId"];
        let command = "Accessibility.queryAXTree";
        let found = self.devtools(command, json!({"backendNodeId": root, "role": role}));
        let nodes = found["nodes"].as_array().unwrap().iter();
        nodes
            .map(|node| {
                node["name"]["value"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned()
            })
            .collect()
    }

    /// The window's width in pixels, and whether the reader prefers dark colors.
    pub fn set_window(&self, width: u32, dark: bool) {
        self.set_screen((width, 844), if dark { "dark" } else { "light" });
    }

    /// The window's size in pixels, and its colors: `light`, `dark` or `forced`, those of a contrast theme.
    pub fn set_screen(&self, (width, height): (u32, u32), colors: &str) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.devtools("Emulation.setDeviceMetricsOverride", metrics);
        let scheme = if colors == "dark" { "dark" } else { "light" };
        let scheme = json!({"name": "prefers-color-scheme", "value": scheme});
        let forced = if colors == "forced" { "active" } else { "none" };
        let forced = json!({"name": "forced-colors", "value": forced});
        // Colors are compared without their transitions.
        let motion = json!({"name": "prefers-reduced-motion", "value": "reduce"});
        let command = "Emulation.setEmulatedMedia";
        self.devtools(command, json!({"features": [scheme, forced, motion]}));
    }

    /// The window's content, as a PNG file.
    pub fn picture(&self) -> Vec<u8> {
        self.runtime.block_on(self.client.screenshot()).unwrap()
    }

    /// Sets the folder of downloads.
    pub fn download_to(&self, folder: &Path) {
        let parameters = json!({"behavior": "allow", "downloadPath": folder});
        self.devtools("Browser.setDownloadBehavior", parameters);
    }

    /// The console shows only requests that were refused with these statuses.
    pub fn expect_quiet_console(&self, refused: &[u16]) {
        let lines = self
            .runtime
            .block_on(
                self.client
                    .issue_cmd(Vendor("se/log", json!({"type": "browser"}))),
            )
            .unwrap();
        for line in lines.as_array().expect("a log") {
            let message = line["message"].as_str().unwrap_or_default();
            // The browser notes that it did what the server asked for.
            if message.contains("Clear-Site-Data header on") {
                continue;
            }
            let is_refusal =
                |status: &u16| message.contains(&format!("responded with a status of {status} "));
            assert!(line["source"] == "network", "on the console: {line}");
            assert!(refused.iter().any(is_refusal), "on the console: {line}");
        }
    }

    /// axe-core finds nothing.
    pub fn check_accessibility(&self, axe: &str, place: &str) {
        self.check_rules(axe, Rules::All, place);
    }

    /// axe-core finds nothing by some of its rules.
    pub fn check_rules(&self, axe: &str, rules: Rules, place: &str) {
        let (options, least) = match rules {
            Rules::None => return,
            Rules::All => (json!({"rules": {"target-size": {"enabled": true}}}), 10),
            Rules::Contrast => (json!({"runOnly": ["color-contrast"]}), 0),
        };
        if self.js("return !window.axe") == Value::Bool(true) {
            self.js(axe);
        }
        let script = "const [options, done] = arguments; axe.run(options).then(({violations, passes}) => done({passes: passes.length, \
                      found: violations.map(({id, nodes}) => [id, nodes.slice(0, 3).map(node => node.html + ' ' + node.failureSummary)])}))";
        let result = self
            .runtime
            .block_on(self.client.execute_async(script, vec![options]))
            .unwrap();
        assert!(
            result["passes"].as_u64() > Some(least),
            "{place}: axe checked nothing: {result}"
        );
        assert_eq!(result["found"], json!([]), "{place}");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends the browser. A driver that is killed before would leave the browser running.
        let _ = self.runtime.block_on(self.client.clone().close());
    }
}
