package hostiletest

import (
	"net"
	"strconv"

	"golang.org/x/net/dns/dnsmessage"
)

// nameRows are tricks of a name server, played after the probe found the service alive.
func nameRows() []row {
	// turns is a name that leads to the host for the probe and is looked up so later.
	turns := func(then answerer) func(int) answerer {
		return func(n int) answerer {
			if n == 1 {
				return leadsTo("127.0.0.1")
			}
			return then
		}
	}
	named := func(name, host string, looks func(int) answerer, w want) row {
		asked := none
		if w.cost == charged {
			asked = 0
		}
		return row{name: name, plan: plan{work: good, name: host + ".hostile.test", looks: looks}, asked: asked, want: w}
	}
	dead := make([]string, 0, 60)
	for i := range 60 {
		dead = append(dead, "127.0.1."+strconv.Itoa(i+1))
	}
	return []row{
		named("its name leads to it", "plain", turns(leadsTo("127.0.0.1")), serves(done)),
		named("its name is gone after the probe", "gone", turns(code(dnsmessage.RCodeNameError)), unreachable),
		named("its name has no address after the probe", "empty", turns(leadsTo()), unreachable),
		named("its name server fails", "servfail", turns(code(dnsmessage.RCodeServerFailure)), ourTrouble),
		named("its name server refuses to say", "refused", turns(code(dnsmessage.RCodeRefused)), ourTrouble),
		named("its name server does not answer", "silent", turns(silent), ourTrouble).briefly(),
		named("its name server answers garbage", "garbage", turns(garbage), ourTrouble).briefly(),
		named("its name leads to itself", "loop", turns(alias("loop.hostile.test")), unreachable),
		named("its name leads to a name that does not exist", "alias", turns(alias("nobody.hostile.test")), unreachable),
		named("its name leads to 60 addresses where nobody is", "many", turns(leadsTo(dead...)), unreachable),
		named("its name leads to 8 addresses of which the last is alive", "last", turns(leadsTo(append(dead[:7:7], "127.0.0.1")...)), serves(done)),
		// How many strangers we connect to is not for a provider to say.
		named("its name leads to 60 addresses of which the last is alive", "beyond", turns(leadsTo(append(dead[:59:59], "127.0.0.1")...)), unreachable),
		named("its name leads to another address each time", "wanders", func(n int) answerer {
			return leadsTo(net.IPv4(127, 0, 0, 1).String(), net.IPv4(127, 0, 2, byte(n)).String()) //nolint:gosec // a few times
		}, serves(done)),
		named("its name is gone at the probe", "never", func(int) answerer { return code(dnsmessage.RCodeNameError) }, notLive),
		named("its name server fails at the probe", "down", func(int) answerer { return code(dnsmessage.RCodeServerFailure) }, cannotLook),
	}
}
