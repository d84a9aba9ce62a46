package config

import "slices"

// A Desk is what `market facilitator` reads, checked. It has no treasury: the program moves other people's money to other people, and
// a key that holds ours has no business in it.
type Desk struct {
	Dev       bool    `env:"MARKET_DEV" envDefault:"0" expect:"0 or 1" meaning:"development mode: a bare gas key is accepted"`
	Listen    Address `env:"MARKET_LISTEN" envDefault:"127.0.0.1:4021" expect:"host:port" meaning:"listener: /verify, /settle, /supported"`
	OpsListen Address `env:"MARKET_OPS_LISTEN" envDefault:"127.0.0.1:4022" expect:"host:port other than MARKET_LISTEN" meaning:"operations listener: /livez, /readyz, /metrics"`

	Database Database

	NetworksFile string `env:"MARKET_NETWORKS" expect:"path of a networks file" meaning:"JSON file of networks and assets"`
	KeysFile     string `env:"MARKET_FACILITATOR_KEYS" expect:"path of a file of API keys" meaning:"JSON file of API keys, each with the recipients that it may settle to"`

	Gas Key `envPrefix:"MARKET_GAS_" meaning:"gas account, which sends the transactions"`

	LogLevel LogLevel `env:"MARKET_LOG_LEVEL" envDefault:"info" expect:"debug, info, warn or error" meaning:"the least that is logged"`

	Networks []Network `env:"-"` // read from NetworksFile; at least one
	Keys     []APIKey  `env:"-"` // read from KeysFile; at least one
}

// LoadDesk reads a process's environment and the files that it names, for `market facilitator`.
func LoadDesk(environ []string) (Desk, error) {
	var d Desk
	p := newProblems(environ, &d)
	p.parse(&d)
	p.foreign("market facilitator", Describe())
	p.unknown()
	p.checkOpsListen(d.Listen, d.OpsListen)
	p.checkDatabase(&d.Database)
	p.checkKey("MARKET_GAS_", d.Gas, d.Dev)
	d.Networks = readFile(p, "MARKET_NETWORKS", d.NetworksFile, readNetworks)
	d.Keys = readFile(p, "MARKET_FACILITATOR_KEYS", d.KeysFile, readAPIKeys)
	if err := p.err(); err != nil {
		return Desk{}, err
	}
	return d, nil
}

// foreign reports variables of another command. They are not ignored: whoever sets the fee, or a treasury, where neither is used has
// mistaken the program.
func (p *problems) foreign(command string, others []Variable) {
	for name := range p.values {
		_, known := p.known[name]
		if !known && slices.ContainsFunc(others, func(v Variable) bool { return v.Name == name }) {
			p.say(name, "not used by `%s`; leave it out", command)
		}
	}
}

// readFile reads a file that has to be named.
func readFile[T any](p *problems, name, path string, read func(path string) (T, []error)) T {
	if path == "" {
		p.wrong(name)
		var none T
		return none
	}
	content, errs := read(path)
	for _, err := range errs {
		p.fileLine(name, err)
	}
	return content
}
