//! Routers that speak UPnP, on loopback: one that forwards, and answers that lead elsewhere.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::*;

const OUTER: &str = "198.20.0.1";
const LOCAL: NonZeroU16 = NonZeroU16::new(4433).expect("not 0");

const DEVICE: &str = r#"<?xml version="1.0"?><root xmlns="urn:schemas-upnp-org:device-1-0"><device>
<deviceType>urn:schemas-upnp-org:device:InternetGatewayDevice:1</deviceType><deviceList><device>
<deviceType>urn:schemas-upnp-org:device:WANDevice:1</deviceType><deviceList><device>
<deviceType>urn:schemas-upnp-org:device:WANConnectionDevice:1</deviceType><serviceList><service>
<serviceType>urn:schemas-upnp-org:service:WANIPConnection:1</serviceType>
<serviceId>urn:upnp-org:serviceId:WANIPConn1</serviceId>
<controlURL>CONTROL</controlURL><eventSubURL>/event</eventSubURL><SCPDURL>/actions</SCPDURL>
</service></serviceList></device></deviceList></device></deviceList></device></root>"#;

const ACTIONS: &str = r#"<?xml version="1.0"?><scpd xmlns="urn:schemas-upnp-org:service-1-0"><actionList>
<action><name>AddPortMapping</name><argumentList>
<argument><name>NewRemoteHost</name><direction>in</direction></argument>
<argument><name>NewExternalPort</name><direction>in</direction></argument>
<argument><name>NewProtocol</name><direction>in</direction></argument>
<argument><name>NewInternalPort</name><direction>in</direction></argument>
<argument><name>NewInternalClient</name><direction>in</direction></argument>
<argument><name>NewEnabled</name><direction>in</direction></argument>
<argument><name>NewPortMappingDescription</name><direction>in</direction></argument>
<argument><name>NewLeaseDuration</name><direction>in</direction></argument>
</argumentList></action>
<action><name>DeletePortMapping</name><argumentList>
<argument><name>NewRemoteHost</name><direction>in</direction></argument>
<argument><name>NewExternalPort</name><direction>in</direction></argument>
<argument><name>NewProtocol</name><direction>in</direction></argument>
</argumentList></action>
<action><name>GetExternalIPAddress</name><argumentList>
<argument><name>NewExternalIPAddress</name><direction>out</direction></argument>
</argumentList></action>
</actionList></scpd>"#;

/// A machine that answers searches and requests.
struct Machine {
    ip: Ipv4Addr,
    /// The requests that came, with their bodies.
    requests: Arc<Mutex<Vec<String>>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Machine {
    /// Its answers to searches name a description at `location`, and come from `source`. The first `taken` ports of the router are
    /// another machine's.
    async fn at(
        ip: Ipv4Addr,
        location: Ipv4Addr,
        source: Ipv4Addr,
        control: &str,
        taken: usize,
    ) -> Self {
        let http = TcpListener::bind((ip, 5000)).await.expect("free");
        let searches = UdpSocket::bind((ip, SEARCH_PORT)).await.expect("free");
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let device = DEVICE.replace("CONTROL", control);
        let answers = async move {
            let answer = format!(
                "HTTP/1.1 200 OK\r\nST: urn:schemas-upnp-org:device:InternetGatewayDevice:1\r\nLOCATION: http://{location}:5000/device\r\n\r\n"
            );
            let other = UdpSocket::bind((source, 0)).await.expect("free");
            let mut packet = [0; 1024];
            while let Ok((_, from)) = searches.recv_from(&mut packet).await {
                let from_here = if source == ip { &searches } else { &other };
                from_here
                    .send_to(answer.as_bytes(), from)
                    .await
                    .expect("sent");
            }
        };
        let serves = {
            let requests = Arc::clone(&requests);
            async move {
                let mut left = taken;
                while let Ok((mut stream, _)) = http.accept().await {
                    let request = read_request(&mut stream).await;
                    let (status, body) = respond(&request, &device, &mut left);
                    requests
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(request);
                    let head = format!(
                        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                        body.len()
                    );
                    // The other end may have enough.
                    let _ = stream.write_all((head + &body).as_bytes()).await;
                }
            }
        };
        let tasks = vec![tokio::spawn(answers), tokio::spawn(serves)];
        Self {
            ip,
            requests,
            tasks,
        }
    }

    fn requests(&self) -> Vec<String> {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn gateway(&self) -> Gateway {
        Gateway {
            address: self.ip,
            client: Ipv4Addr::LOCALHOST,
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn read_request(stream: &mut tokio::net::TcpStream) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        let len = stream.read(&mut buffer).await.unwrap_or(0);
        text.push_str(&String::from_utf8_lossy(&buffer[..len]));
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            if len == 0 {
                return text;
            }
            continue;
        };
        let lower = head.to_ascii_lowercase();
        let length = lower
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |text| text.trim().parse().expect("a number"));
        if body.len() >= length || len == 0 {
            return text;
        }
    }
}

fn respond(request: &str, device: &str, taken: &mut usize) -> (&'static str, String) {
    let done = |action: &str, values: &str| {
        let body = format!(
            "<u:{action}Response xmlns:u=\"urn:schemas-upnp-org:service:WANIPConnection:1\">{values}</u:{action}Response>"
        );
        format!(
            "<?xml version=\"1.0\"?><s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Body>{body}</s:Body></s:Envelope>"
        )
    };
    match request {
        _ if request.starts_with("GET /device") => ("200 OK", device.to_owned()),
        _ if request.starts_with("GET /actions") => ("200 OK", ACTIONS.to_owned()),
        _ if request.contains("#GetExternalIPAddress") => {
            let value = format!("<NewExternalIPAddress>{OUTER}</NewExternalIPAddress>");
            ("200 OK", done("GetExternalIPAddress", &value))
        }
        _ if request.contains("#AddPortMapping") && *taken > 0 => {
            *taken -= 1;
            let fault = "<s:Fault><faultcode>s:Client</faultcode><faultstring>UPnPError</faultstring><detail><UPnPError xmlns=\"urn:schemas-upnp-org:control-1-0\"><errorCode>718</errorCode><errorDescription>ConflictInMappingEntry</errorDescription></UPnPError></detail></s:Fault>";
            (
                "500 Internal Server Error",
                format!(
                    "<?xml version=\"1.0\"?><s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Body>{fault}</s:Body></s:Envelope>"
                ),
            )
        }
        _ if request.contains("#AddPortMapping") => ("200 OK", done("AddPortMapping", "")),
        _ if request.contains("#DeletePortMapping") => ("200 OK", done("DeletePortMapping", "")),
        _ => ("404 Not Found", String::new()),
    }
}

fn ip(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 78, last)
}

#[tokio::test]
async fn a_router_forwards_a_port_that_is_free_and_takes_it_back() {
    let router = Machine::at(ip(1), ip(1), ip(1), "/control", 2).await;
    let asked = Forwarded::ask(router.gateway(), LOCAL, None).await;
    let (forwarded, outer) = asked.expect("forwarded");
    assert_eq!(
        (outer.to_string().as_str(), forwarded.port().get()),
        (OUTER, 4435)
    );
    let adds = router.requests().pop().expect("asked");
    for value in [
        "<NewExternalPort>4435</NewExternalPort>",
        "<NewInternalPort>4433</NewInternalPort>",
        "<NewInternalClient>127.0.0.1</NewInternalClient>",
        "<NewProtocol>UDP</NewProtocol>",
        "<NewLeaseDuration>600</NewLeaseDuration>",
    ] {
        assert!(adds.contains(value), "{adds}");
    }
    let again = Forwarded::ask(router.gateway(), LOCAL, Some(&forwarded)).await;
    assert_eq!(again.expect("renewed").0.port().get(), 4435);
    forwarded.remove().await;
    let removes = router.requests().pop().expect("asked");
    assert!(
        removes.contains("#DeletePortMapping") && removes.contains("4435"),
        "{removes}"
    );
}

#[tokio::test]
async fn a_router_whose_ports_are_all_taken_is_asked_for_a_few() {
    let router = Machine::at(ip(2), ip(2), ip(2), "/control", 1000).await;
    let asked = Forwarded::ask(router.gateway(), LOCAL, None).await;
    assert_eq!(asked.err(), Some(MappingFault::Refused));
    let adds = router
        .requests()
        .into_iter()
        .filter(|it| it.contains("#AddPortMapping"));
    assert_eq!(adds.count(), usize::from(MAX_PORTS));
}

/// Each of these answers comes from the gateway, or seems to, and names another machine.
#[tokio::test]
async fn no_request_goes_to_another_machine_than_the_gateway() {
    let victim = Machine::at(ip(10), ip(10), ip(10), "/control", 0).await;
    let theirs = format!("http://{}:5000/control", victim.ip);
    for (last, location, source, control) in [
        // The description is elsewhere.
        (11, victim.ip, ip(11), "/control"),
        // The services are elsewhere.
        (12, ip(12), ip(12), theirs.as_str()),
        // Another machine answers.
        (13, victim.ip, ip(14), "/control"),
        // One that answers for itself.
        (15, ip(10), ip(10), "/control"),
    ] {
        let router = Machine::at(ip(last), location, source, control, 0).await;
        let asked = Forwarded::ask(router.gateway(), LOCAL, None).await;
        assert!(asked.is_err(), "{last}");
        assert_eq!(victim.requests(), [] as [&str; 0], "{last}");
    }
}
