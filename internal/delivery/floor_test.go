package delivery

import (
	"strings"
	"testing"

	"github.com/shopspring/decimal"

	"market/internal/catalog"
	"market/internal/chain"
)

func TestPath_Offered_WhereThePriceReachesTheFloor(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		price  string
		floors []string
		want   string // the networks that are offered, by number
		warned int
	}{
		"above both floors":                {"1", []string{"0.001", "0.5"}, "12", 0},
		"just below the second":            {"0.499999", []string{"0.001", "0.5"}, "1", 1},
		"on the second":                    {"0.5", []string{"0.001", "0.5"}, "12", 0},
		"no floor":                         {"0.000001", []string{"0", "0.5"}, "1", 1},
		"below all, which were raised":     {"0.0005", []string{"0.001", "0.5"}, "12", 1},
		"below the one there is":           {"0.0005", []string{"0.001"}, "1", 1},
		"a network whose floor came first": {"0.01", []string{"0.5", "0.001"}, "2", 1},
	} {
		p := &Path{}
		for i, floor := range tt.floors {
			p.Rails = append(p.Rails, Rail{Network: chain.Network{ID: string(rune('1' + i)), FloorUSD: decimal.RequireFromString(floor)}})
		}
		price := catalog.Price{USD: decimal.RequireFromString(tt.price)}
		var got strings.Builder
		for _, r := range p.offered(price) {
			got.WriteString(r.Network.ID)
		}
		if warned := p.belowFloor(price); got.String() != tt.want || len(warned) != tt.warned {
			t.Errorf("%s: offered on %q with the warnings %q, want %q and %d", name, got.String(), warned, tt.want, tt.warned)
		}
	}
}
