package delivery

import (
	"testing"

	"market/internal/catalog"
	"market/internal/strikes"
)

func TestBelongs_WhereNoDepartureStands(t *testing.T) {
	t.Parallel()
	delisted := func(from catalog.State, v strikes.Verdict) departure {
		return departure{From: from, To: catalog.Delisted, Verdict: v}
	}
	held := func(v strikes.Verdict) departure {
		return departure{From: catalog.Listed, To: catalog.Held, Verdict: v}
	}
	for name, tt := range map[string]struct {
		departures []departure // the newest first
		want       catalog.State
	}{
		"the delisting stands":                               {[]departure{delisted(catalog.Listed, strikes.Delists)}, catalog.Delisted},
		"it falls short":                                     {[]departure{delisted(catalog.Listed, strikes.Stays)}, catalog.Listed},
		"it comes of too few sources now":                    {[]departure{delisted(catalog.Listed, strikes.Holds)}, catalog.Held},
		"a suspension before it":                             {[]departure{delisted(catalog.Suspended, strikes.Stays)}, catalog.Suspended},
		"a suspension before it, and a hold would have come": {[]departure{delisted(catalog.Suspended, strikes.Holds)}, catalog.Suspended},
		"a measured hold before it":                          {[]departure{delisted(catalog.Held, strikes.Stays)}, catalog.Held},
		"the hold stands":                                    {[]departure{held(strikes.Holds)}, catalog.Held},
		"the hold falls short":                               {[]departure{held(strikes.Stays)}, catalog.Listed},
		"more sources came while it was held":                {[]departure{held(strikes.Delists)}, catalog.Held},
		"a hold before it stands":                            {[]departure{delisted(catalog.Held, strikes.Stays), held(strikes.Holds)}, catalog.Held},
		"a hold before it falls short too":                   {[]departure{delisted(catalog.Held, strikes.Stays), held(strikes.Stays)}, catalog.Listed},
		"it stands, whatever the hold before it":             {[]departure{delisted(catalog.Held, strikes.Delists), held(strikes.Stays)}, catalog.Delisted},
		"the second of two that fall short": {[]departure{delisted(catalog.Held, strikes.Stays), delisted(catalog.Held, strikes.Stays),
			held(strikes.Stays)}, catalog.Listed},
	} {
		if got := belongs(tt.departures); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}
