package catalog

import "testing"

func TestProviderOf_IsWhatIsRegisteredOfTheHost(t *testing.T) {
	t.Parallel()
	for baseURL, want := range map[string]string{
		"https://weather.example":             "weather.example",
		"https://api.weather.example/v2":      "weather.example",
		"https://eu.api.weather.example:8443": "weather.example",
		"https://api.weather.co.uk":           "weather.co.uk",
		"https://weather.co.uk":               "weather.co.uk",
		"https://a.b.weather.k12.ca.us":       "weather.k12.ca.us",
		// Where everybody may have names for nothing, all of them are one.
		"https://mallory-1.vercel.app":                  "vercel.app",
		"https://mallory-2.vercel.app:8443/x":           "vercel.app",
		"https://vercel.app":                            "vercel.app",
		"https://a.mallory.github.io":                   "github.io",
		"https://x.s3.eu-west-1.amazonaws.com":          "amazonaws.com",
		"https://ec2-1.us-east-1.compute.amazonaws.com": "amazonaws.com",
		"https://mallory.blogspot.co.uk":                "blogspot.co.uk",
		"https://mallory.uk.com":                        "uk.com",
		"https://203.0.113.7:8443/a":                    "203.0.113.0/24",
		"https://203.0.113.8":                           "203.0.113.0/24",
		"http://127.0.0.1:4711":                         "127.0.0.0/24",
		"http://[2001:db8::1]:8080":                     "2001:db8::/48",
		"http://[2001:db8:0:ffff::2]":                   "2001:db8::/48",
		"http://localhost:4711":                         "localhost",
		"http://localhost:4712":                         "localhost",
		"http://app.localhost:4711":                     "app.localhost",
		"https://co.uk":                                 "co.uk",
		"not a base URL":                                "not a base URL",
	} {
		if got := ProviderOf(baseURL); got != want {
			t.Errorf("the provider of %s is %s, want %s", baseURL, got, want)
		}
	}
}
