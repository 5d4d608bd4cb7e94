//! Text that `quipu serve` prints once it listens: its addresses, and commands that work against them.
//!
//! With credentials the commands read the password or token from its file or variable. No secret is
//! printed.

use app::App;
use net::listeners::table::Listener;
use std::net::{IpAddr, SocketAddr};

/// Credentials as the commands name them.
enum Login {
    /// The server asks for none.
    Anonymous,
    /// A user, and the shell expression of the password where a file has it.
    User(String, Option<String>),
    /// The shell expression of the token.
    Token(String),
}

/// Properties of the server that its commands depend on.
struct Commands {
    login: Login,
    /// File of the certificate chain, where the listeners speak TLS.
    certificate: Option<String>,
}

/// The banner of a server that listens.
pub fn banner(app: &App, addresses: &[(Listener, SocketAddr)]) -> String {
    let settings = &app.config.settings;
    let text = |name: &str| Some(settings.text(name)).filter(|text| !text.is_empty());
    let read = |path: &str| format!("\"$(cat {})\"", quote(path));
    let login = match (app.config.credentials.are_required(), text("http-user")) {
        (false, _) => Login::Anonymous,
        (true, Some(user)) => Login::User(user.into(), text("http-password-file").map(read)),
        (true, None) => Login::Token(
            text("bearer-token-file").map_or("\"$QUIPU_BEARER_TOKEN\"".to_string(), read),
        ),
    };
    let commands = Commands { login, certificate: text("tls-cert").map(str::to_string) };
    let (curl, url) = (commands.curl(), app.url());
    let mut banner = format!(
        "Quipu {version} keeps {data_dir} and listens on {url}\n\
         \n\
         Things to try:\n\
         1. write   {curl} -d 'weather,city=Cusco temperature=14.5' '{url}/write'\n\
         2. query   {curl} -g '{url}/api/v1/query?query=weather_temperature'\n\
         3. look    open {url}/ in a browser\n",
        version = env!("CARGO_PKG_VERSION"),
        data_dir = app.config.data_dir.display(),
    );
    let others = addresses.iter().filter_map(|(listener, address)| match listener {
        Listener::Redis => Some(commands.redis(*address)),
        Listener::Postgres => Some(commands.postgres(*address)),
        Listener::Http | Listener::Influx => None,
    });
    for (number, command) in (4..).zip(others) {
        banner.push_str(&format!("{number}. {command}\n"));
    }
    banner
}

impl Commands {
    fn curl(&self) -> String {
        let login = match &self.login {
            Login::Anonymous => String::new(),
            Login::User(user, Some(password)) => format!(" -u {}:{password}", quote(user)),
            // curl asks for the password.
            Login::User(user, None) => format!(" -u {}", quote(user)),
            Login::Token(token) => format!(" -H \"Authorization: Bearer \"{token}"),
        };
        match &self.certificate {
            Some(path) => format!("curl --cacert {}{login}", quote(path)),
            None => format!("curl{login}"),
        }
    }

    fn redis(&self, address: SocketAddr) -> String {
        let (before, behind) = match &self.login {
            Login::Anonymous => (String::new(), ""),
            Login::User(_, Some(secret)) | Login::Token(secret) => {
                (format!("REDISCLI_AUTH={secret} "), "")
            }
            Login::User(_, None) => (String::new(), " --askpass"),
        };
        let tls = match &self.certificate {
            Some(path) => format!(" --tls --cacert {}", quote(path)),
            None => String::new(),
        };
        let place = redis_place(address);
        format!("keys    {before}redis-cli{place}{tls}{behind} set greeting hello")
    }

    fn postgres(&self, address: SocketAddr) -> String {
        let (before, user) = match &self.login {
            Login::Anonymous => (String::new(), String::new()),
            Login::User(user, Some(secret)) => {
                (format!("PGPASSWORD={secret} "), format!(" -U {}", quote(user)))
            }
            // psql asks for the password.
            Login::User(user, None) => (String::new(), format!(" -U {}", quote(user))),
            Login::Token(secret) => (format!("PGPASSWORD={secret} "), String::new()),
        };
        let tls = if self.certificate.is_some() { "PGSSLMODE=require " } else { "" };
        let (host, port) = (reachable(address), address.port());
        format!(
            "SQL     {tls}{before}psql -h {host} -p {port}{user} -c 'SELECT * FROM metrics LIMIT 5'"
        )
    }
}

/// Host and port flags of redis-cli; the host only where it is not the default.
fn redis_place(address: SocketAddr) -> String {
    let (host, port) = (reachable(address), address.port());
    match host == IpAddr::from([127, 0, 0, 1]) {
        true => format!(" -p {port}"),
        false => format!(" -h {host} -p {port}"),
    }
}

/// The address by which a client on this machine reaches a listener.
fn reachable(address: SocketAddr) -> IpAddr {
    match address.ip() {
        ip if ip.is_unspecified() => IpAddr::from([127, 0, 0, 1]),
        ip => ip,
    }
}

/// A word for a POSIX shell, in quotes where it needs them.
fn quote(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_string(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(login: Login, certificate: Option<&str>) -> [String; 3] {
        let commands = Commands { login, certificate: certificate.map(str::to_string) };
        let address = SocketAddr::from(([127, 0, 0, 1], 6));
        [commands.curl(), commands.redis(address), commands.postgres(address)]
    }

    #[test]
    fn commands_log_in() {
        let select = "-c 'SELECT * FROM metrics LIMIT 5'";
        assert_eq!(
            commands(Login::Anonymous, None),
            [
                "curl".to_string(),
                "keys    redis-cli -p 6 set greeting hello".into(),
                format!("SQL     psql -h 127.0.0.1 -p 6 {select}"),
            ]
        );
        assert_eq!(
            commands(Login::User("ann o".into(), None), None),
            [
                "curl -u 'ann o'".to_string(),
                "keys    redis-cli -p 6 --askpass set greeting hello".into(),
                format!("SQL     psql -h 127.0.0.1 -p 6 -U 'ann o' {select}"),
            ]
        );
        let secret = "\"$(cat /run/pw)\"".to_string();
        assert_eq!(
            commands(Login::User("ann".into(), Some(secret.clone())), None),
            [
                "curl -u ann:\"$(cat /run/pw)\"".to_string(),
                "keys    REDISCLI_AUTH=\"$(cat /run/pw)\" redis-cli -p 6 set greeting hello".into(),
                format!(
                    "SQL     PGPASSWORD=\"$(cat /run/pw)\" psql -h 127.0.0.1 -p 6 -U ann {select}"
                ),
            ]
        );
        assert_eq!(
            commands(Login::Token(secret), Some("/c.pem")),
            [
                "curl --cacert /c.pem -H \"Authorization: Bearer \"\"$(cat /run/pw)\"".to_string(),
                "keys    REDISCLI_AUTH=\"$(cat /run/pw)\" redis-cli -p 6 --tls --cacert /c.pem set \
                 greeting hello"
                    .into(),
                format!(
                    "SQL     PGSSLMODE=require PGPASSWORD=\"$(cat /run/pw)\" psql -h 127.0.0.1 -p 6 \
                     {select}"
                ),
            ]
        );
    }

    #[test]
    fn words_of_a_shell_are_quoted() {
        for (text, quoted) in
            [("a/b.c", "a/b.c"), ("", "''"), ("it's", r"'it'\''s'"), ("$x", "'$x'")]
        {
            assert_eq!(quote(text), quoted);
        }
    }

    #[test]
    fn clients_reach_every_address() {
        let place = |text: &str| redis_place(text.parse().expect("an address"));
        assert_eq!(place("0.0.0.0:6"), " -p 6");
        assert_eq!(place("10.1.2.3:6"), " -h 10.1.2.3 -p 6");
        assert_eq!(place("[::1]:6"), " -h ::1 -p 6");
    }
}
