//! A small HTTP/1.1 client: keep-alive, bodies of a known length, and raw requests.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use flate2::read::MultiGzDecoder;
use serde_json::Value;
use socket2::{Domain, Socket, Type};

/// The time limit of an answer.
const TIME_LIMIT: Duration = Duration::from_secs(40);

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The content as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn assert_status(&self, status: u16) {
        assert_eq!(self.status, status, "{}", self.text());
    }

    /// Asserts the status, and the code of the problem.
    #[track_caller]
    pub fn assert_problem(&self, status: u16, code: &str) {
        let found = (self.status, self.problem());
        assert_eq!(found, (status, code.to_owned()), "{}", self.text());
    }

    pub fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("no JSON ({error}): {} {text}", self.status))
    }

    /// The records of a page.
    pub fn items(&self) -> Vec<Value> {
        self.assert_status(200);
        match self.json()["data"].take() {
            Value::Array(items) => items,
            other => panic!("no page: {other}"),
        }
    }

    /// The content of a file that was sent compressed.
    pub fn gunzip(&self) -> Vec<u8> {
        self.assert_status(200);
        let mut content = Vec::new();
        MultiGzDecoder::new(self.body.as_slice())
            .read_to_end(&mut content)
            .expect("a whole gzip file");
        content
    }

    /// The parts of the answer that are equal at different servers: status, tags and counts, and the content without
    /// the clock, the request's id and the server's port.
    pub fn comparable(&self) -> (u16, Vec<String>, Vec<u8>) {
        let headers = words![
            "content-type" "etag" "x-record-count" "x-records-digest" "x-sync-token" "retry-after" "vary"
            "cache-control"
        ];
        let headers = headers
            .map(|name| format!("{name}: {}", self.header(name).unwrap_or("-")))
            .to_vec();
        let kind = self.header("content-type").unwrap_or_default();
        let is_packed =
            self.header("content-encoding") == Some("gzip") || kind == "application/gzip";
        let content = if is_packed && self.status == 200 {
            self.gunzip()
        } else {
            self.body.clone()
        };
        if !kind.contains("json") {
            return (self.status, headers, content);
        }
        let mut json: Value = serde_json::from_slice(&content).expect("JSON");
        if let Some(members) = json.as_object_mut() {
            members.retain(|name, _| !["time", "request_id", "type"].contains(&name.as_str()));
        }
        (self.status, headers, json.to_string().into_bytes())
    }

    /// The records of a JSONL export. Their number must be the announced one.
    pub fn lines(&self) -> Vec<Value> {
        let content = String::from_utf8(self.gunzip()).expect("UTF-8");
        let lines: Vec<Value> = content
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON lines"))
            .collect();
        let header = self.header("x-record-count");
        assert_eq!(header, Some(lines.len().to_string().as_str()));
        lines
    }

    /// The error code. Checks the headers and members that every problem has.
    pub fn problem(&self) -> String {
        assert!(self.status >= 400, "{} is no error", self.status);
        let header = self.header("content-type");
        assert_eq!(header, Some("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status, "{problem}");
        let id = self.header("x-request-id").unwrap_or_default();
        assert!(!id.is_empty(), "{problem} {:?}", self.headers);
        assert!(problem["request_id"] == id, "{problem} {:?}", self.headers);
        assert!(problem["title"].is_string(), "{problem}");
        assert!(problem["detail"].is_string(), "{problem}");
        let (_, code) = problem["type"]
            .as_str()
            .and_then(|url| url.rsplit_once("/errors/"))
            .expect("a type");
        code.to_owned()
    }
}

/// A caller with one connection.
#[derive(Debug)]
pub struct Client {
    address: SocketAddr,
    key: Option<String>,
    /// More header lines, each with its end.
    headers: String,
    /// The source address of connections, if it matters.
    from: Option<IpAddr>,
    connection: Option<BufReader<TcpStream>>,
}

impl Client {
    pub fn new(address: SocketAddr, key: Option<&str>) -> Client {
        Client {
            address,
            key: key.map(str::to_owned),
            headers: String::new(),
            from: None,
            connection: None,
        }
    }

    /// The server's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends a header with every request.
    pub fn with_header(mut self, name: &str, value: &str) -> Client {
        self.headers.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    /// Connects from an address of its own.
    pub fn coming_from(mut self, address: IpAddr) -> Client {
        self.from = Some(address);
        self
    }

    /// Requests a path and query.
    pub fn get(&mut self, target: &str) -> Answer {
        self.try_get(target)
            .unwrap_or_else(|error| panic!("GET {target}: {error}"))
    }

    /// The sync token of the export of a dataset.
    pub fn token(&mut self, dataset: &str) -> String {
        let export = self.get(&format!("/v1/exports/{dataset}"));
        export.header("x-sync-token").expect("a token").to_owned()
    }

    /// Requests a path and query, over the open connection if it is still open.
    pub fn try_get(&mut self, target: &str) -> io::Result<Answer> {
        if let Some(mut connection) = self.connection.take()
            && let Ok(answer) = self.exchange(&mut connection, target)
        {
            self.keep(connection, &answer);
            return Ok(answer);
        }
        let mut connection = BufReader::new(match self.from {
            Some(from) => connect_from(from, self.address, None)?,
            None => connect(self.address)?,
        });
        let answer = self.exchange(&mut connection, target)?;
        self.keep(connection, &answer);
        Ok(answer)
    }

    fn keep(&mut self, connection: BufReader<TcpStream>, answer: &Answer) {
        self.connection = (answer.header("connection") != Some("close")).then_some(connection);
    }

    fn exchange(&self, connection: &mut BufReader<TcpStream>, target: &str) -> io::Result<Answer> {
        connection
            .get_mut()
            .write_all(self.request(target).as_bytes())?;
        read_answer(connection, false)
    }

    /// The text of a request.
    pub fn request(&self, target: &str) -> String {
        let key = self
            .key
            .as_ref()
            .map(|key| format!("authorization: Bearer {key}\r\n"))
            .unwrap_or_default();
        format!(
            "GET {target} HTTP/1.1\r\nhost: {}\r\n{key}{}\r\n",
            self.address, self.headers
        )
    }
}

/// Connects, with time limits.
pub fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    prepared(TcpStream::connect(address)?)
}

/// Connects from one of this machine's addresses, optionally with a receive buffer of `buffer` bytes.
pub fn connect_from(
    source: IpAddr,
    address: SocketAddr,
    buffer: Option<usize>,
) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    if let Some(bytes) = buffer {
        socket.set_recv_buffer_size(bytes)?;
    }
    socket.bind(&SocketAddr::new(source, 0).into())?;
    socket.connect(&address.into())?;
    prepared(socket.into())
}

fn prepared(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_read_timeout(Some(TIME_LIMIT))?;
    stream.set_write_timeout(Some(TIME_LIMIT))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Reads one answer. Answers to HEAD (`to_head`) have no body, whatever their length says.
pub fn read_answer(reader: &mut impl BufRead, to_head: bool) -> io::Result<Answer> {
    let (status, headers) = read_head(reader)?;
    let mut answer = Answer {
        status,
        headers,
        body: Vec::new(),
    };
    if !to_head && ![204, 304].contains(&status) {
        let length = answer
            .header("content-length")
            .and_then(|length| length.parse().ok());
        answer.body = vec![0; length.ok_or_else(|| malformed("no content-length"))?];
        reader.read_exact(&mut answer.body)?;
    }
    Ok(answer)
}

/// Reads an answer's status and headers.
pub fn read_head(reader: &mut impl BufRead) -> io::Result<(u16, Vec<(String, String)>)> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let status = line
        .strip_prefix("HTTP/1.1 ")
        .or_else(|| line.strip_prefix("HTTP/1.0 "));
    let status = status
        .and_then(|rest| rest.get(..3)?.parse().ok())
        .ok_or_else(|| malformed(&line))?;
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    if line == "\r\n" {
        Ok((status, headers))
    } else {
        Err(malformed(&line))
    }
}

/// Sends a request over a connection. Returns its answer.
pub fn ask(connection: &mut BufReader<TcpStream>, request: &str) -> io::Result<Answer> {
    connection.get_mut().write_all(request.as_bytes())?;
    read_answer(connection, false)
}

/// Whether the other side ends the connection, whatever it sends before.
pub fn is_closed(stream: &mut impl Read, within: Duration) -> bool {
    let begun = Instant::now();
    let mut piece = [0; 4096];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => return false,
                _ => return true,
            },
        }
        if begun.elapsed() >= within {
            return false;
        }
    }
}

fn malformed(line: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("not an answer: {line:?}"),
    )
}
