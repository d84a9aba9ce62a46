package config

import (
	"time"

	"market/internal/plan"
)

// Config is everything the environment says, checked. The tags are the table that `market serve --help` prints.
type Config struct {
	Dev       bool    `env:"MARKET_DEV" envDefault:"0" expect:"0 or 1" meaning:"development mode: raw keys, http upstreams and private upstream addresses are accepted"`
	Listen    Address `env:"MARKET_LISTEN" envDefault:"127.0.0.1:4021" expect:"host:port" meaning:"public listener"`
	OpsListen Address `env:"MARKET_OPS_LISTEN" envDefault:"127.0.0.1:4022" expect:"host:port other than MARKET_LISTEN" meaning:"operations listener: /livez, /readyz, /metrics"`
	// PublicURL has no slash at its end. It is empty only in development, when it is not set and Listen leaves the port to the system.
	PublicURL string `env:"MARKET_PUBLIC_URL" expect:"an https URL without user, path, query or fragment (http in development)" shown:"http://<MARKET_LISTEN> in development" meaning:"what callers see; every resource URL is built from it"`

	Database Database

	TrustedProxies Prefixes `env:"MARKET_TRUSTED_PROXIES" expect:"addresses or CIDR ranges, separated by commas" shown:"none" meaning:"whose forwarded headers count"`
	OwnSources     Prefixes `env:"MARKET_OWN_SOURCES" expect:"addresses or CIDR ranges, separated by commas, or none" shown:"loopback; in development none" meaning:"caller addresses that are our own and move no strike"`

	NetworksFile     string `env:"MARKET_NETWORKS" expect:"path of a networks file" meaning:"JSON file of networks and assets"`
	FacilitatorsFile string `env:"MARKET_FACILITATORS" expect:"path of a facilitators file" shown:"one local facilitator for all networks" meaning:"JSON file of facilitators, in order"`

	PlansFile string `env:"MARKET_PLANS" expect:"path of a plans file" shown:"free, pro and scale" meaning:"JSON file of the plans of providers, in order; the first is what an account begins with"`

	Treasury Key         `envPrefix:"MARKET_TREASURY_" meaning:"treasury, which receives payments and signs refunds"`
	Retired  RetiredKeys `envPrefix:"MARKET_TREASURY_RETIRED_" meaning:"treasuries that were replaced, until none of them owes anything"`
	Gas      Key         `envPrefix:"MARKET_GAS_" meaning:"gas account, which sends our transactions; not needed where no facilitator is local"`

	SecretsKeyFile string `env:"MARKET_SECRETS_KEY_FILE" expect:"path of a file with lines of 64 hex digits, the current key first" shown:"in development a key that is in the source and protects nothing" meaning:"keys that encrypt stored answers, upstream headers and service secrets"`

	RestoredAt    time.Time     `env:"MARKET_RESTORED_AT" expect:"a time such as 2026-01-02T03:04:05Z, not in the future" shown:"no backup was restored" meaning:"when a backup of the database was restored: payments before it that it does not know go to review"`
	QuoteValidity time.Duration `env:"MARKET_QUOTE_VALIDITY" envDefault:"10m" expect:"a duration from 0s to 24h" meaning:"how long an old price stays acceptable after a change"`
	Grace         time.Duration `env:"MARKET_GRACE" envDefault:"120s" expect:"a duration from 0s to 1h" meaning:"how long a payment that was settled and not asked waits for its caller before it is refunded"`
	Retention     time.Duration `env:"MARKET_ANSWER_RETENTION" envDefault:"24h" expect:"a duration from 1m to 720h" meaning:"how long a served answer can be fetched again: of services without an account and on the first built-in plan. The other two keep it for as long, and for 72h and 168h at least"`
	StrikeFold    bool          `env:"MARKET_STRIKE_FOLD" envDefault:"1" expect:"0 or 1" meaning:"concurrent failures of one incident are one strike"`
	StrikeWindow  time.Duration `env:"MARKET_STRIKE_WINDOW" envDefault:"24h" expect:"a duration from 1s to 8760h" meaning:"how long an open strike counts"`
	StrikeLimit   int           `env:"MARKET_STRIKE_LIMIT" envDefault:"3" expect:"a number from 1 to 100" meaning:"open strikes in the window that delist a service"`
	StrikeSources int           `env:"MARKET_STRIKE_SOURCES" envDefault:"1" expect:"a number from 1 to 100" meaning:"different networks (/24, or /48 of IPv6) that the evidence of these strikes has to come from: with fewer the service is held for a review"`
	Cooldown      time.Duration `env:"MARKET_COOLDOWN" envDefault:"60s" expect:"a duration from 1ms to 24h" meaning:"how long a service rests after a failure"`
	ProbeTTL      time.Duration `env:"MARKET_PROBE_TTL" envDefault:"5s" expect:"a duration from 1ms to 10m" meaning:"how long a liveness verdict counts"`
	Canaries      Canaries      `env:"MARKET_CANARIES" expect:"at most 8 of host:port or URLs, separated by commas, or none" shown:"none" meaning:"hosts that are always up: while one of them takes no connection, a service that cannot be connected to in time is not blamed; when none does, twice within 10 s, no failure is a service's"`
	RefundLimit   Limit         `env:"MARKET_REFUND_LIMIT" envDefault:"5/10m" expect:"count/duration, such as 5/10m: 1 to 1000000 in 1s to 24h" meaning:"refunded calls of a payer at an endpoint before it is refused there"`
	AdminToken    Secret        `env:"MARKET_ADMIN_TOKEN" expect:"at least 16 characters" shown:"none: the API takes no admin" meaning:"bearer token of the admin API, and what an admin signs in with at /admin"`
	AdminWallets  Wallets       `env:"MARKET_ADMIN_WALLETS" expect:"at most 100 addresses of 0x and 40 hex digits, separated by commas, or none" shown:"none" meaning:"wallets that are admins when they sign in; one that an admin has demoted stays so"`
	ExposureUSD   USD           `env:"MARKET_EXPOSURE_USD" expect:"US dollars such as 25 or 0.50, above 0 and at most 1000000" shown:"none, in development alone: nothing is derived from it" meaning:"what you may lose on each network (b): it bounds what is sent to settlement since it was last proved that settling and refunding work, and what is unproved where a facilitator has proof later"`
	ExposureShare Share         `env:"MARKET_EXPOSURE_SHARE" expect:"a part such as 0.25, above 0 and at most 1, with at most four digits" shown:"none: all processes share the whole" meaning:"the part of MARKET_EXPOSURE_USD that is this process's own"`
	AdmitRate     USD           `env:"MARKET_ADMIT_USD_PER_SECOND" expect:"US dollars such as 2.50, at least 0.000001 and at most MARKET_EXPOSURE_USD" shown:"a tenth of MARKET_EXPOSURE_USD, or of this process's part of it" meaning:"what this process may send to settlement in a second (r), on each network"`
	AdmitBurst    USD           `env:"MARKET_ADMIT_BURST_USD" expect:"US dollars, at least 0.000001 and at most what MARKET_ADMIT_USD_PER_SECOND gives in a second" shown:"as much as a second gives" meaning:"what this process may send to settlement at once (c): no dearer call is sold"`
	FeeBPS        int           `env:"MARKET_FEE_BPS" envDefault:"500" expect:"basis points from 0 to 10000" meaning:"our fee on a call of services without an account and on the first built-in plan; on the other two it is 3/5 and 2/5 of it. It is pinned when the payment is claimed"`
	Operator      Operator
	LogLevel      LogLevel `env:"MARKET_LOG_LEVEL" envDefault:"info" expect:"debug, info, warn or error" meaning:"the least that is logged"`

	Networks     []Network     `env:"-"` // read from NetworksFile; at least one
	Facilitators []Facilitator `env:"-"` // read from FacilitatorsFile; every network has one
	Plans        plan.Table    `env:"-"` // read from PlansFile, or the built-in ones
}

// Database says where the data is: at a URL, or else in an embedded server.
type Database struct {
	URL     Secret `env:"MARKET_DATABASE_URL" expect:"a postgres:// URL" shown:"the embedded server under MARKET_DATA_DIR" meaning:"Postgres 14 or newer"`
	DataDir string `env:"MARKET_DATA_DIR" expect:"a path" shown:"the user's data folder; /var/lib/market for root" meaning:"where the embedded server keeps its data"`
	BinDir  string `env:"PG_BIN" expect:"a folder with initdb and postgres" shown:"looked for" meaning:"binaries of the embedded server"`
}

// A Key is a signing key in an encrypted file, or in development its bare hex.
type Key struct {
	Keystore     string `env:"KEYSTORE" expect:"path of a keystore file" meaning:"encrypted key"`
	PasswordFile string `env:"KEYSTORE_PASSWORD_FILE" expect:"path of a file" meaning:"password of the keystore"`
	Raw          Secret `env:"KEY" expect:"64 hex digits" meaning:"bare key; development only"`
}

// RetiredKeys are signing keys that sign what is still owed, and receive nothing any more.
type RetiredKeys struct {
	Keystores KeyFiles `env:"KEYSTORES" expect:"keystore=password file, separated by commas" shown:"none" meaning:"encrypted keys"`
	Keys      Secret   `env:"KEYS" expect:"64 hex digits each, separated by commas" shown:"none" meaning:"bare keys; development only"`
}

// Load reads a process's environment, as os.Environ gives it, and the files that it names.
func Load(environ []string) (Config, error) {
	var c Config
	p := newProblems(environ, &c)
	p.parse(&c)
	p.foreign("market serve", DescribeDesk())
	p.unknown()
	p.checkAddresses(&c)
	p.checkDatabase(&c.Database)
	p.readFiles(&c)
	p.checkKeys(&c)
	p.checkRanges(&c)
	p.checkExposure(&c)
	p.checkOperator(&c.Operator, c.Dev)
	if err := p.err(); err != nil {
		return Config{}, err
	}
	return c, nil
}

// LoadDatabase reads only where the data is, for commands that need nothing else. Other variables are not looked at.
func LoadDatabase(environ []string) (Database, error) {
	var d Database
	p := newProblems(environ, &d)
	p.parse(&d)
	p.checkDatabase(&d)
	return d, p.err()
}
