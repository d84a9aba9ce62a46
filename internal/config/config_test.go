package config

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"market/internal/crash"
)

const rawKey = "0x1111111111111111111111111111111111111111111111111111111111111111"

const networksText = `{"networks":[{"id":"eip155:84532","v1_name":"base-sepolia","rpc":["http://127.0.0.1:8545"],"confirmations":2,"serve_at_depth":1,
  "explorer":"https://sepolia.basescan.org","floor_usd":"0.001",
  "assets":[{"address":"0x036CbD53842c5426634e7929541eC2318f3dCF7e","symbol":"USDC","decimals":6,"eip712_name":"USDC","eip712_version":"2"}]}]}`

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// production is the least that a server with real money needs.
func production(t *testing.T) []string {
	t.Helper()
	file := writeFile(t, "any", "x")
	return []string{
		"MARKET_PUBLIC_URL=https://market.example/",
		"MARKET_NETWORKS=" + writeFile(t, "networks.json", networksText),
		"MARKET_TREASURY_KEYSTORE=" + file, "MARKET_TREASURY_KEYSTORE_PASSWORD_FILE=" + file,
		"MARKET_GAS_KEYSTORE=" + file, "MARKET_GAS_KEYSTORE_PASSWORD_FILE=" + file,
		"MARKET_SECRETS_KEY_FILE=" + file,
	}
}

// development is the least that a development server needs.
func development(t *testing.T) []string {
	t.Helper()
	return []string{
		"MARKET_DEV=1", "MARKET_NETWORKS=" + writeFile(t, "networks.json", networksText),
		"MARKET_TREASURY_KEY=" + rawKey, "MARKET_GAS_KEY=" + rawKey[2:],
	}
}

func load(t *testing.T, environ []string) Config {
	t.Helper()
	c, err := Load(environ)
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	return c
}

func TestLoad_ProductionDefaultsAreTheDocumentedOnes(t *testing.T) {
	t.Parallel()
	c := load(t, production(t))
	type row struct{ got, want any }
	loopback := Prefixes{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	for name, r := range map[string]row{
		"dev":             {c.Dev, false},
		"listen":          {c.Listen, Address("127.0.0.1:4021")},
		"ops listen":      {c.OpsListen, Address("127.0.0.1:4022")},
		"public URL":      {c.PublicURL, "https://market.example"},
		"database":        {c.Database.URL.Reveal(), ""},
		"own sources":     {fmt.Sprint(c.OwnSources), fmt.Sprint(loopback)},
		"trusted proxies": {len(c.TrustedProxies), 0},
		"admin wallets":   {len(c.AdminWallets), 0},
		"quote validity":  {c.QuoteValidity, 10 * time.Minute},
		"strike fold":     {c.StrikeFold, true},
		"strike window":   {c.StrikeWindow, 24 * time.Hour},
		"strike limit":    {c.StrikeLimit, 3},
		"strike sources":  {c.StrikeSources, 1},
		"cooldown":        {c.Cooldown, time.Minute},
		"probe TTL":       {c.ProbeTTL, 5 * time.Second},
		"refund limit":    {c.RefundLimit, Limit{5, 10 * time.Minute}},
		"fee":             {c.FeeBPS, 500},
		"log level":       {c.LogLevel, LogLevel("info")},
		"admin token":     {c.AdminToken.Reveal(), ""},
		"facilitators":    {fmt.Sprint(c.Facilitators), "[{local local [eip155:84532] receipt  (none) { (none)} {false  0s 0 {0 0}  []}}]"},
	} {
		if r.got != r.want {
			t.Errorf("%s = %v, want %v", name, r.got, r.want)
		}
	}
}

func TestLoad_DevelopmentIsLenient(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		more string
		want func(Config) bool
	}{
		"bare keys":                          {"", func(c Config) bool { return c.Treasury.Raw.Reveal() == rawKey && c.Gas.Raw.Reveal() == rawKey[2:] }},
		"no sources are our own":             {"", func(c Config) bool { return len(c.OwnSources) == 0 }},
		"callers see the listener":           {"", func(c Config) bool { return c.PublicURL == "http://127.0.0.1:4021" }},
		"callers see where it listens":       {"MARKET_LISTEN=:8000", func(c Config) bool { return c.PublicURL == "http://127.0.0.1:8000" }},
		"every address is seen as this host": {"MARKET_LISTEN=[::]:8000", func(c Config) bool { return c.PublicURL == "http://127.0.0.1:8000" }},
		"a port to be chosen is not known":   {"MARKET_LISTEN=127.0.0.1:0", func(c Config) bool { return c.PublicURL == "" }},
		"a plain public URL":                 {"MARKET_PUBLIC_URL=http://box:8000", func(c Config) bool { return c.PublicURL == "http://box:8000" }},
		"a short admin token":                {"MARKET_ADMIN_TOKEN=dev", func(c Config) bool { return c.AdminToken.Reveal() == "dev" }},
		"two admins":                         {"MARKET_ADMIN_WALLETS=0x70997970C51812dc3A010C7d01b50e0d17dc79C8, 0x0a3dad9d5816792c90a168d63574dacb09acf6fb", func(c Config) bool { return len(c.AdminWallets) == 2 }},
		"set to nothing is not set":          {"MARKET_COOLDOWN=", func(c Config) bool { return c.Cooldown == time.Minute }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c := load(t, append(development(t), test.more)); !test.want(c) {
				t.Errorf("got %+v", c)
			}
		})
	}
}

func TestLoad_AValueThatIsWrongIsNamedWithWhatWasReceived(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{
		"MARKET_DEV=perhaps",
		"MARKET_LISTEN=4021",
		"MARKET_LISTEN=host:99999",
		"MARKET_LISTEN=host:http",
		"MARKET_OPS_LISTEN=127.0.0.1:4021",
		"MARKET_PUBLIC_URL=market.example",
		"MARKET_PUBLIC_URL=http://market.example",
		"MARKET_PUBLIC_URL=ftp://market.example",
		"MARKET_PUBLIC_URL=https://market.example/shop",
		"MARKET_PUBLIC_URL=https://market.example?",
		"MARKET_PUBLIC_URL=https://market.example/#top",
		"MARKET_PUBLIC_URL=https://user@market.example",
		"MARKET_PUBLIC_URL=https://:443",
		"MARKET_TRUSTED_PROXIES=10.0.0.0/8,",
		"MARKET_TRUSTED_PROXIES=10.0.0.0/33",
		"MARKET_TRUSTED_PROXIES=::ffff:10.0.0.0/104",
		"MARKET_OWN_SOURCES=localhost",
		"MARKET_ADMIN_WALLETS=0x70997970C51812dc3A010C7d01b50e0d17dc79C",
		"MARKET_ADMIN_WALLETS=0x70997970C51812dc3A010C7d01b50e0d17dc79C8,",
		"MARKET_ADMIN_WALLETS=0x0000000000000000000000000000000000000000",
		"MARKET_QUOTE_VALIDITY=-1s",
		"MARKET_QUOTE_VALIDITY=10",
		"MARKET_QUOTE_VALIDITY=24h0m1s",
		"MARKET_STRIKE_FOLD=yes",
		"MARKET_STRIKE_WINDOW=999ms",
		"MARKET_STRIKE_WINDOW=8760h1s",
		"MARKET_STRIKE_LIMIT=0",
		"MARKET_STRIKE_LIMIT=101",
		"MARKET_STRIKE_LIMIT=three",
		"MARKET_STRIKE_SOURCES=0",
		"MARKET_STRIKE_SOURCES=101",
		"MARKET_COOLDOWN=0s",
		"MARKET_COOLDOWN=24h1s",
		"MARKET_PROBE_TTL=0s",
		"MARKET_PROBE_TTL=10m1s",
		"MARKET_CANARIES=1.1.1.1",
		"MARKET_CANARIES=1.1.1.1:53,",
		"MARKET_CANARIES=:53",
		"MARKET_CANARIES=host:0",
		"MARKET_CANARIES=host:65536",
		"MARKET_CANARIES=host:dns",
		"MARKET_CANARIES=https://user@host.example",
		"MARKET_CANARIES=ftp://host.example",
		"MARKET_CANARIES=host.example/x:443",
		"MARKET_CANARIES=a:1,b:1,c:1,d:1,e:1,f:1,g:1,h:1,i:1",
		"MARKET_REFUND_LIMIT=5",
		"MARKET_REFUND_LIMIT=0/10m",
		"MARKET_REFUND_LIMIT=5/0s",
		"MARKET_REFUND_LIMIT=5/25h",
		"MARKET_REFUND_LIMIT=1000001/10m",
		"MARKET_FEE_BPS=-1",
		"MARKET_FEE_BPS=10001",
		"MARKET_LOG_LEVEL=loud",
		"MARKET_NETWORKS=/nowhere/at/all",
		"MARKET_FACILITATORS=/nowhere/at/all",
		"MARKET_TREASURY_KEYSTORE=/nowhere/at/all",
		"MARKET_GAS_KEYSTORE_PASSWORD_FILE=/",
	} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			_, err := Load(append(production(t), setting))
			name, value, _ := strings.Cut(setting, "=")
			if err == nil {
				t.Fatal("accepted")
			}
			if text := err.Error(); strings.Contains(text, "\n") || !strings.HasPrefix(text, name+": ") || !strings.Contains(text, fmt.Sprintf("%q", value)) {
				t.Errorf("err = %q, want one line that begins with %s and quotes %q", text, name, value)
			}
		})
	}
}

func TestLoad_CanariesAreHostsWithTheirPorts(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]Canaries{
		"":                          nil,
		"none":                      nil,
		"1.1.1.1:53":                {"1.1.1.1:53"},
		"one.example:443, [::1]:80": {"one.example:443", "[::1]:80"},
		"https://one.example/health?x,http://[2606:4700::1111],https://two.example:8443": {"one.example:443", "[2606:4700::1111]:80", "two.example:8443"},
		"a:1,b:1,c:1,d:1,e:1,f:1,g:1,h:65535":                                            {"a:1", "b:1", "c:1", "d:1", "e:1", "f:1", "g:1", "h:65535"},
	} {
		if c := load(t, append(production(t), "MARKET_CANARIES="+value)); !slices.Equal(c.Canaries, want) {
			t.Errorf("%q = %q, want %q", value, c.Canaries, want)
		}
	}
}

func TestLoad_TheEdgesOfRangesAreGood(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{
		"MARKET_QUOTE_VALIDITY=0s", "MARKET_QUOTE_VALIDITY=24h", "MARKET_STRIKE_WINDOW=1s", "MARKET_STRIKE_WINDOW=8760h",
		"MARKET_STRIKE_LIMIT=1", "MARKET_STRIKE_LIMIT=100", "MARKET_STRIKE_SOURCES=1", "MARKET_STRIKE_SOURCES=100", "MARKET_COOLDOWN=1ms", "MARKET_COOLDOWN=24h", "MARKET_PROBE_TTL=1ms",
		"MARKET_PROBE_TTL=10m", "MARKET_REFUND_LIMIT=1/1s", "MARKET_REFUND_LIMIT=1000000/24h", "MARKET_FEE_BPS=0", "MARKET_FEE_BPS=10000",
		"MARKET_ADMIN_TOKEN=exactly16letters", "MARKET_DATABASE_URL=postgresql://db/market", "MARKET_LISTEN=:0",
	} {
		if _, err := Load(append(production(t), setting)); err != nil {
			t.Errorf("%s: %v", setting, err)
		}
	}
}

func TestLoad_ReportsEverythingTogetherInTheOrderOfTheTable(t *testing.T) {
	t.Parallel()
	_, err := Load([]string{
		"MARKET_LISTEN=here", "MARKET_COOLDOWN=never", "MARKET_FUTURE=1", "MARKET_CANARIES=1.1.1.1", "MARKET_LATER=1", "MARKET_TREASURY_KEY=" + rawKey, "HOME=/root",
	})
	if err == nil {
		t.Fatal("accepted")
	}
	var names []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		name, _, _ := strings.Cut(line, ": ")
		names = append(names, name)
	}
	want := []string{
		"MARKET_LISTEN", "MARKET_PUBLIC_URL", "MARKET_NETWORKS", "MARKET_TREASURY_KEY", "MARKET_GAS_KEYSTORE", "MARKET_GAS_KEYSTORE_PASSWORD_FILE",
		"MARKET_SECRETS_KEY_FILE", "MARKET_COOLDOWN", "MARKET_CANARIES", "MARKET_FUTURE", "MARKET_LATER",
	}
	if !slices.Equal(names, want) {
		t.Errorf("lines of\n%v\nwant\n%v\nin\n%v", names, want, err)
	}
}

func TestLoad_AnErrorShowsNoSecret(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for _, setting := range []string{
		"MARKET_ADMIN_TOKEN=" + secret, "MARKET_TREASURY_KEY=" + secret, "MARKET_GAS_KEY=" + secret, "MARKET_DATABASE_URL=mysql://me:" + secret + "@db/x",
		"MARKET_DATABASE_URL=postgres://me:" + secret + "@[db/x",
	} {
		_, err := Load(append(production(t), setting))
		name, _, _ := strings.Cut(setting, "=")
		if err == nil || strings.Contains(err.Error(), secret) || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s: %v, want an error about it that does not show it", setting, err)
		}
	}
}

// A program that can be told to die at a named point is built for tests alone.
func TestLoad_OnlyAProgramForTestsCanBeToldToDie(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{"before:claim": crash.Enabled, "before:nothing": false} {
		if _, err := Load(append(production(t), crash.Variable+"="+value)); (err == nil) != want {
			t.Errorf("%s=%s: %v, want it taken: %v", crash.Variable, value, err, want)
		}
	}
}

func TestLoad_AKeyHasOneSource(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "any", "x")
	tests := map[string]struct {
		environ []string
		want    string // beginning of the error; empty: good
	}{
		"two sources in development": {append(development(t), "MARKET_GAS_KEYSTORE="+file), "MARKET_GAS_KEY: set beside MARKET_GAS_KEYSTORE"},
		"a bare key in production":   {append(production(t), "MARKET_GAS_KEY="+rawKey), "MARKET_GAS_KEY: bare keys are for development only"},
		"keystores in development":   {append(production(t), "MARKET_DEV=1"), ""},
		"a keystore and no password": {append(production(t), "MARKET_GAS_KEYSTORE_PASSWORD_FILE="), "MARKET_GAS_KEYSTORE_PASSWORD_FILE: missing"},
		"a key that is too short":    {append(development(t), "MARKET_GAS_KEY="+rawKey[:65]), "MARKET_GAS_KEY: got a value that is not shown"},
	}
	for name, c := range tests {
		_, err := Load(c.environ)
		if (err == nil) != (c.want == "") || (err != nil && !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestLoad_LetsOtherProgramsVariablesBe(t *testing.T) {
	t.Parallel()
	load(t, append(production(t), "MARKET_CALLER_KEY="+rawKey, "MARKET_TEST_DATABASE_URL=postgres://x", "MARKETPLACE=1", "DEV=1",
		"MARKET_SERVICE_HOST=10.0.0.1", "MARKET_SERVICE_PORT=80", "MARKET_SERVICE_PORT_HTTP=80", "MARKET_PORT=tcp://10.0.0.1:80",
		"MARKET_PORT_80_TCP=tcp://10.0.0.1:80", "MARKET_PORT_80_TCP_ADDR=10.0.0.1", "MARKET_OPS_SERVICE_HOST=10.0.0.2", "MARKET_OPS_PORT=tcp://10.0.0.2:80"))
}

func TestLoad_ReadsRanges(t *testing.T) {
	t.Parallel()
	c := load(t, append(production(t), "MARKET_TRUSTED_PROXIES=10.1.2.3/8, 192.0.2.1,2001:db8::/32", "MARKET_OWN_SOURCES=none"))
	if got, want := fmt.Sprint(c.TrustedProxies), "[10.0.0.0/8 192.0.2.1/32 2001:db8::/32]"; got != want {
		t.Errorf("trusted = %s, want %s", got, want)
	}
	if len(c.OwnSources) != 0 {
		t.Errorf("own = %v, want none", c.OwnSources)
	}
}

func TestLoadDatabase_LooksAtNothingElse(t *testing.T) {
	t.Parallel()
	d, err := LoadDatabase([]string{"MARKET_DATABASE_URL=postgres://db/market", "MARKET_LISTEN=nonsense", "MARKET_DATA_DIR=/data", "PG_BIN=/pg/bin"})
	if err != nil || d.URL.Reveal() != "postgres://db/market" || d.DataDir != "/data" || d.BinDir != "/pg/bin" {
		t.Errorf("got %+v, %v", d, err)
	}
	if _, err := LoadDatabase([]string{"MARKET_DATABASE_URL=db"}); err == nil || !strings.HasPrefix(err.Error(), "MARKET_DATABASE_URL: ") {
		t.Errorf("err = %v, want one about the URL", err)
	}
}

func TestDescribe_EveryVariableIsExplainedOnce(t *testing.T) {
	t.Parallel()
	seen, fields := map[string]bool{}, map[string]bool{}
	for _, v := range Describe() {
		if v.Name == "" || v.Meaning == "" || v.expect == "" {
			t.Errorf("%+v: name, meaning or expectation is missing", v)
		}
		if seen[v.Name] {
			t.Errorf("%s is there twice", v.Name)
		}
		// The parser names a field in its errors, so two that can fail may not share a name. The parts of keys are text and cannot.
		if part := strings.Contains(v.Name, "_TREASURY_") || strings.Contains(v.Name, "_GAS_"); !part && fields[v.field] {
			t.Errorf("%s: a second field %s", v.Name, v.field)
		}
		seen[v.Name], fields[v.field] = true, true
	}
	for _, name := range []string{"MARKET_DEV", "MARKET_GAS_KEYSTORE_PASSWORD_FILE", "MARKET_DATABASE_URL", "MARKET_LOG_LEVEL"} {
		if !seen[name] {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestSecret_NoWayOfPrintingShowsIt(t *testing.T) {
	t.Parallel()
	const value = "hunter2"
	type holder struct {
		Shown  Secret
		hidden Secret
	}
	h := holder{NewSecret(value), NewSecret(value)}
	outputs := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		outputs["itself by "+verb] = fmt.Sprintf(verb, h.Shown)
		outputs["within by "+verb] = fmt.Sprintf(verb, h)
		outputs["by pointer "+verb] = fmt.Sprintf(verb, &h)
	}
	text, err := json.Marshal(map[string]any{"a": h, "b": h.hidden, "c": map[string]*Secret{"d": &h.hidden}})
	if err != nil {
		t.Fatal(err)
	}
	outputs["JSON"] = string(text)
	for how, out := range outputs {
		if strings.Contains(out, value) || strings.Contains(strings.ToLower(out), fmt.Sprintf("%x", value)) {
			t.Errorf("%s shows it: %s", how, out)
		}
	}
	if h.Shown.Reveal() != value || (Secret{}).Reveal() != "" {
		t.Error("what is revealed is not what was hidden")
	}
}
