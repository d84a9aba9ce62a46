package hostiletest

import "strconv"

// addressRows are names that lead into somebody's own network, at a market where services may be at public addresses alone. Nobody connects to
// them, so nobody pays. What a dialer makes of every kind of address is a table of package upstream.
func addressRows() []row {
	rows := []row{}
	for _, tt := range []struct {
		name      string
		addresses []string // "self" is where the host listens
	}{
		{"its name leads to this machine", []string{"self"}},
		{"its name leads to a public address and to this machine (B110)", []string{"93.184.216.34", "self"}},
		{"its name leads to this machine and to a public address (B110)", []string{"self", "93.184.216.34"}},
		{"its name leads to the metadata address of the cloud", []string{"169.254.169.254"}},
		{"its name leads to the metadata address in IPv6", []string{"fd00:ec2::254"}},
		{"its name leads to a private network", []string{"10.0.0.1"}},
		{"its name leads to a carrier's network", []string{"100.64.0.1"}},
		{"its name leads to no address at all", []string{"0.0.0.0"}},
		{"its name leads to this machine in IPv6", []string{"::1"}},
		{"its name leads to this machine, written as IPv6 (B111)", []string{"::ffff:127.0.0.1"}},
		{"its name leads to this machine, translated to IPv6 (B111)", []string{"64:ff9b::7f00:1"}},
		{"its name leads to this machine by way of a tunnel (B111)", []string{"2002:7f00:1::"}},
		{"its name leads to 200 public addresses and this machine (B110)", append(publicAddresses(200), "self")},
	} {
		n := len(rows) + 1
		self := "127.9.0." + strconv.Itoa(n)
		addresses := make([]string, len(tt.addresses))
		for i, a := range tt.addresses {
			if addresses[i] = a; a == "self" {
				addresses[i] = self
			}
		}
		rows = append(rows, row{name: tt.name, guarded: true, asked: none, want: notLive, plan: plan{work: good, tls: goodTLS, at: self,
			name: "inner-" + strconv.Itoa(n) + ".hostile.test", looks: func(int) answerer { return leadsTo(addresses...) }}})
	}
	return rows
}

func publicAddresses(n int) []string {
	var all []string
	for i := range n {
		all = append(all, "93.184.217."+strconv.Itoa(i+1))
	}
	return all
}
