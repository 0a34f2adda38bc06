package store_test

import (
	"errors"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"waybill.dev/go"
	"waybill.dev/go/store"
)

// check returns false for what is refused. JSON holds UTF-8 alone, so the rest never gets to be dialled.
func check(t *testing.T, policy waybill.CheckStreamUrl, from, to string) (waybill.CheckStreamUrlAnswer, bool) {
	t.Helper()
	policy.URL, policy.RedirectFrom = to, from
	address, err := store.Library.CheckStreamUrl(t.Context(), policy)
	if err != nil {
		fatalIf(t, !errors.Is(err, waybill.ErrInvalidArgument) || utf8.ValidString(from+to), "%q from %q: %v", to, from, err)
		return address, false
	}
	if address.Refusal != "" {
		fatalIf(t, address.Message == "", "%q from %q: %+v", to, from, address)
		address.Refusal, address.Message = "", ""
		fatalIf(t, address != (waybill.CheckStreamUrlAnswer{}), "%q: refused with %+v", to, address)
		return address, false
	}
	return address, true
}

func fatalIf(t testing.TB, wrong bool, format string, args ...any) {
	t.Helper()
	if wrong {
		t.Fatalf(format, args...)
	}
}

func TestCheckStreamUrl(t *testing.T) {
	address, ok := check(t, waybill.CheckStreamUrl{}, "", "http://[::1]:41231/exec/t0ken?a=b")
	want := waybill.CheckStreamUrlAnswer{Scheme: "http", Host: "::1", Port: 41231, Path: "/exec/t0ken?a=b"}
	errorIf(t, !ok || address != want, "%+v", address)
	policy := waybill.CheckStreamUrl{Hosts: []string{"10.0.0.7", "crio.local"}, Ports: []int64{443}, RequireHTTPS: true}
	address, ok = check(t, policy, "", "https://CRIO.local")
	errorIf(t, !ok || address.Host != "crio.local" || address.Port != 443, "%+v", address)
	// The first three are what cri-dockerd answered (Mirantis/cri-dockerd#569).
	for url, refusal := range map[string]string{
		"//127.0.0.1:41231/cri/exec/t0ken": "noScheme", "//[::]:35557/cri/exec/t0ken": "noScheme", "127.0.0.1:41231/exec/t0ken": "noScheme",
		"https://10.0.0.7:444/": "portNotAllowed"} {
		policy.URL = url
		address, err := store.Library.CheckStreamUrl(t.Context(), policy)
		errorIf(t, err != nil || address.Refusal != refusal || strings.Contains(address.Message, "t0ken"), "%s: %+v, %v", url, address, err)
	}
}

// A peer of net/url: what CheckStreamURL accepts, Go reads in the same way.
type streamJudge struct {
	policy waybill.CheckStreamUrl // but for the URLs
}

func (j streamJudge) listed(host string) bool {
	ip := net.ParseIP(host)
	return slices.ContainsFunc(j.policy.Hosts, func(entry string) bool {
		if listed := net.ParseIP(entry); listed != nil {
			return ip != nil && listed.Equal(ip)
		}
		return ip == nil && strings.EqualFold(entry, host)
	})
}

// problem says in what u differs from address, or is not to be dialled; "": nothing.
func (j streamJudge) problem(u *url.URL, address waybill.CheckStreamUrlAnswer) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	ip := net.ParseIP(u.Hostname())
	switch {
	case u.Scheme != address.Scheme || u.Scheme != "http" && u.Scheme != "https":
		return "scheme"
	case j.policy.RequireHTTPS && u.Scheme != "https":
		return "not https"
	case u.User != nil || u.Opaque != "" || u.Fragment != "" || u.RawFragment != "":
		return "user, opaque or fragment"
	case port != strconv.Itoa(int(address.Port)) || address.Port == 0:
		return "port " + port
	case len(j.policy.Ports) > 0 && !slices.Contains(j.policy.Ports, address.Port):
		return "port not allowed"
	case ip == nil && !strings.EqualFold(u.Hostname(), address.Host):
		return "host " + u.Hostname()
	case ip != nil && !ip.Equal(net.ParseIP(address.Host)):
		return "address " + u.Hostname()
	case (ip == nil || !ip.IsLoopback()) && !j.listed(u.Hostname()):
		return "neither loopback nor listed: " + u.Hostname()
	case u.RequestURI() != address.Path:
		return "path " + u.RequestURI()
	}
	return ""
}

// drawURLs makes URLs out of parts that readers disagree about, and damages some.
type drawURLs struct{ *rand.Rand }

func (d drawURLs) from(list ...string) string { return list[d.IntN(len(list))] }

// mostly returns `usual` three times in four.
func (d drawURLs) mostly(usual string, others ...string) string {
	if d.IntN(4) > 0 {
		return usual
	}
	return d.from(others...)
}

func (d drawURLs) host() string {
	octet := func() string {
		return d.mostly(strconv.Itoa(d.IntN(256)), "00", "0177", "0x7f", "256", "+1", "1e1", "")
	}
	switch d.IntN(10) {
	case 0:
		return "127." + octet() + "." + octet() + "." + octet()
	case 1:
		return octet() + "." + octet() + "." + octet() + "." + octet()
	case 2:
		return d.from("[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:10.0.0.7]", "[::127.0.0.1]", "[0:0::1]",
			"[fe80::1%25lo]", "[::1%lo]", "[::ffff:7f00:1]", "[fd00::7]", "[FD00:0::0007]", "[v1.a]", "[::1", "::1", "[127.0.0.1]")
	case 3:
		groups := make([]string, 1+d.IntN(9))
		for i := range groups {
			groups[i] = d.mostly(strconv.FormatInt(int64(d.IntN(3)), 16), "", "ffff", "7f00", "127.0.0.1", "00001")
		}
		return "[" + strings.Join(groups, ":") + "]"
	case 4:
		return d.from("localhost", "LOCALHOST", "crio.local", "Crio.Local", "crio.local.", "x.crio.local", "evil.example",
			"127.0.0.1.evil.example", "127.0.0.1.", "2130706433", "127.1", "0", "0x7f000001", "\u0661\u0662\u0667.0.0.1", "127\u30020\u30020\u30021", "")
	default:
		return d.from("127.0.0.1", "127.0.0.1", "10.0.0.7", "[::1]")
	}
}

func (d drawURLs) path() string {
	var path strings.Builder
	for range d.IntN(5) {
		path.WriteString(d.from("/", "//", "/..", "/.", "/exec", "/t0ken", "/a;b=c", "/a,b", "/%2e%2e", "/%2F", "/@x", "/:80", "/a%00", "?", "?x=y", "?//u@h/", "#", "%", "\\", "&", "!$'()*", "~"))
	}
	return path.String()
}

func (d drawURLs) url() string {
	var u strings.Builder
	u.WriteString(d.mostly("http", "https", "HTTP", "hTTps", "", "ftp", "ws", "http:http", " http", "java", "127.0.0.1"))
	u.WriteString(d.mostly("://", "//", ":", ":/", ":///", "", ":\\\\", ":/\\"))
	u.WriteString(d.mostly("", "", "@", "u@", "u:p@", "127.0.0.1@", "127.0.0.1:80@", "%40", "127.0.0.1\\@", "127.0.0.1#@", "127.0.0.1?@"))
	u.WriteString(d.host())
	u.WriteString(d.mostly(d.from("", ":80", ":41231", ":10010", ":65535", ":443"), ":", ":0", ":080", ":65536", ":+80", ":80:80", ":x", ":-1", ":\u0668\u0660"))
	u.WriteString(d.path())
	return d.damage(u.String())
}

func (d drawURLs) location() string {
	if d.IntN(2) == 0 {
		return d.url()
	}
	return d.damage(d.from("", "", "/", "//", "///", "//127.0.0.1", "//evil.example", "..", ".", "x", "x:y", "1:2", "?", "#") + d.path())
}

func (d drawURLs) damage(text string) string {
	b := []byte(text)
	for d.IntN(3) == 0 {
		at := d.IntN(len(b) + 1)
		switch d.IntN(3) {
		case 0:
			const odd = "\x00\t\n\r \x1f\x7f\\/@:?#%[].0x1a\"<>^`{|}~!$&'()*+,;=-_\x80\xe3\xff"
			b = slices.Insert(b, at, odd[d.IntN(len(odd))])
		case 1:
			if at < len(b) {
				b = slices.Delete(b, at, at+1)
			}
		default:
			if at < len(b) {
				b[at] = byte(d.IntN(256))
			}
		}
	}
	return string(b)
}

// What is accepted goes where Go's own reader sends it too: a difference would be a way to make a
// kubelet dial what nobody checked.
func TestStreamURLsAgainstNetURL(t *testing.T) {
	seed := rand.Uint64()
	if text := os.Getenv("WAYBILL_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	t.Logf("play again with WAYBILL_SEED=%d", seed)
	d := drawURLs{rand.New(rand.NewPCG(seed, 0))}
	listed := []string{"10.0.0.7", "fd00::7", "crio.local"}
	policies := []waybill.CheckStreamUrl{
		{},
		{SameHostRedirects: true},
		{Hosts: listed, SameHostRedirects: true},
		{Hosts: listed, Ports: []int64{80, 443, 10010}, SameHostRedirects: true},
		{Hosts: listed, RequireHTTPS: true, SameHostRedirects: true},
	}
	accepted, followed := 0, 0
	for range 40000 {
		judge := streamJudge{policies[d.IntN(len(policies))]}
		text := d.url()
		address, ok := check(t, judge.policy, "", text)
		if !ok {
			continue
		}
		accepted++
		u, err := url.Parse(text)
		fatalIf(t, err != nil, "%q: Go refuses it: %v", text, err)
		if problem := judge.problem(u, address); problem != "" {
			t.Fatalf("%q with %+v: %+v, but Go: %s", text, judge.policy, address, problem)
		}
		for range 4 {
			location := d.location()
			to, ok := check(t, judge.policy, text, location)
			if !ok {
				continue
			}
			followed++
			reference, err := url.Parse(location)
			fatalIf(t, err != nil, "%q from %q: Go refuses it: %v", location, text, err)
			resolved := u.ResolveReference(reference)
			if problem := judge.problem(resolved, to); problem != "" {
				t.Fatalf("%q from %q with %+v: %+v, but Go: %s", location, text, judge.policy, to, problem)
			}
			fatalIf(t, !judge.policy.SameHostRedirects || to.Host != address.Host || address.Scheme == "https" && to.Scheme != "https", "%q from %q: followed", location, text)
			again, ok := check(t, judge.policy, "", resolved.String())
			fatalIf(t, !ok || again != to, "%q from %q: %+v, and %+v as one", location, text, to, again)
		}
	}
	errorIf(t, accepted < 2000 || followed < 500, "only %d accepted, %d followed", accepted, followed)
	t.Logf("%d accepted, %d followed", accepted, followed)
}
