package waybill

// #include "shim.h"
import "C"

import (
	"net"
	"net/url"
	"strconv"
	"time"
)

// StreamURLError is the error of [CheckStreamURL] and [CheckStreamRedirect] if the address must not
// be dialled.
type StreamURLError struct {
	Refusal StreamURLRefusal
	// Message says what is wrong with which part of the URL, and what to do. It has neither path nor
	// query, which may hold the token.
	Message string
}

// Error returns Message.
func (e *StreamURLError) Error() string { return e.Message }

// StreamAddress is where to connect, and what to ask for there.
type StreamAddress struct {
	Scheme string // "http" or "https"
	// Host is an IP address without brackets in its canonical form (an IPv4-mapped address as IPv4), or
	// a listed name in lower case.
	Host string
	Port uint16 // filled in where the URL has none
	// Path is the path as the URL has it, at least "/", with the query. It holds the token: do not log
	// it.
	Path string
}

// HostPort returns what [net.Dial] takes.
func (a StreamAddress) HostPort() string {
	return net.JoinHostPort(a.Host, strconv.Itoa(int(a.Port)))
}

// URL returns the address for an HTTP client, always with the port.
func (a StreamAddress) URL() (*url.URL, error) {
	u, err := url.ParseRequestURI(a.Path)
	if err != nil {
		return nil, err
	}
	u.Scheme, u.Host = a.Scheme, a.HostPort()
	return u, nil
}

// CheckStreamURL says whether a kubelet, or what stands in for it, may connect to url, as a runtime's
// answer to Exec, Attach or PortForward names it (KEP-1558). It asks no resolver. 127.0.0.0/8, ::1 and
// IPv4-mapped loopback addresses are loopback. Connect to the address, not to url: another parser may
// read the URL differently. [*StreamURLError]: why it must not be dialled. ErrOutOfMemory.
func CheckStreamURL(url string, policy StreamURLPolicy) (StreamAddress, error) {
	var a arena
	defer a.free()
	var check *C.waybill_stream_url_check
	var e *C.waybill_error
	code := C.waybill_check_stream_url(borrow(url), put(&a, cStreamURLPolicy(&a, &policy)), &check, &e)
	return takeStreamAddress(check, takeError(code, e))
}

// CheckStreamRedirect says whether a redirect to location (the header Location) may be followed,
// when original answered with it. By default none may. With SameHostRedirects, the location,
// resolved as in RFC 3986, must pass [CheckStreamURL], have the host of original and not go from
// https to http; the port may differ. The caller counts redirects, and passes the URL of the last
// answer as original; the API server gave up after 10. [*StreamURLError], ErrOutOfMemory.
func CheckStreamRedirect(original, location string, policy StreamURLPolicy) (StreamAddress, error) {
	var a arena
	defer a.free()
	var check *C.waybill_stream_url_check
	var e *C.waybill_error
	code := C.waybill_check_stream_redirect(borrow(original), borrow(location), put(&a, cStreamURLPolicy(&a, &policy)), &check, &e)
	return takeStreamAddress(check, takeError(code, e))
}

func takeStreamAddress(check *C.waybill_stream_url_check, err error) (StreamAddress, error) {
	if err != nil {
		return StreamAddress{}, err
	}
	var refused *StreamURLError
	address := take(check, func(check *C.waybill_stream_url_check) StreamAddress {
		if check.refusal != C.WAYBILL_STREAM_URL_ALLOWED {
			refused = &StreamURLError{StreamURLRefusal(check.refusal), goString(check.message)}
			return StreamAddress{}
		}
		return StreamAddress{
			Scheme: goString(C.waybill_stream_scheme_name(check.scheme)),
			Host:   goString(check.host),
			Port:   uint16(check.port),
			Path:   goString(check.path),
		}
	})
	if refused != nil {
		return StreamAddress{}, refused
	}
	return address, nil
}

// RateLimit says how fast bytes may pass through one proxied connection: a kubelet's
// MaxConnectionBytesPerSec (KEP-1558, "Risks and Mitigations"), as a token bucket without a clock, a
// goroutine or I/O of its own. The zero value has no limit. A copy is a bucket of its own. Not safe
// for concurrent use.
//
// Each call is given the time since any fixed moment, by a monotonic clock: time.Since(start). The
// elapsed time is the sum of its steps forward; a step back gives nothing, and time counts from
// there on. At most burst + rate * elapsed bytes pass.
type RateLimit struct {
	limit C.waybill_rate_limit
}

// NewRateLimit makes a bucket with a full burst. bytesPerSecond 0: no limit. burst 0: what passes in a
// tenth of a second, at least one byte.
func NewRateLimit(bytesPerSecond, burst uint64, now time.Duration) *RateLimit {
	return &RateLimit{C.waybill_rate_limit_make(C.uint64_t(bytesPerSecond), C.uint64_t(burst), C.int64_t(now))}
}

// Take returns how many of wanted bytes may pass now, and counts them as passed. 0: wait.
func (l *RateLimit) Take(wanted uint64, now time.Duration) uint64 {
	return uint64(C.waybill_rate_limit_take(&l.limit, C.uint64_t(wanted), C.int64_t(now)))
}

// GiveBack returns bytes of the last Take that did not pass, for instance because a read returned
// fewer.
func (l *RateLimit) GiveBack(bytes uint64) {
	C.waybill_rate_limit_give_back(&l.limit, C.uint64_t(bytes))
}

// Wait returns how long it takes from now on until Take(wanted) gives all of wanted, or a full burst if
// that is less.
func (l *RateLimit) Wait(wanted uint64, now time.Duration) time.Duration {
	return time.Duration(C.waybill_rate_limit_wait(&l.limit, C.uint64_t(wanted), C.int64_t(now)))
}
