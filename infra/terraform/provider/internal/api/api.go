// Package api calls Quorate's API with the generated client. Every call has a deadline and is repeated while that is
// harmless. It ends with the contract's answer, or with an error that says whose fault it is.
package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"quorate/infra/terraform/provider/internal/api/gen"
)

const (
	callTimeout    = 20 * time.Second // an admission waits for a durable write and the first configuration
	attempts       = 4
	pauseFirst     = 250 * time.Millisecond
	pauseMax       = 5 * time.Second
	answerBytesMax = 8 << 20
)

// Problem is the API's own refusal (RFC 9457).
type Problem struct{ gen.Problem }

func (p *Problem) Error() string {
	return fmt.Sprintf("%s (%s, request %s)", p.Detail, p.Code, p.RequestId)
}

// Unreachable: no answer. `Sent`: the request may have taken effect.
type Unreachable struct {
	Address string
	Sent    bool
	Cause   error
}

func (u *Unreachable) Error() string {
	return fmt.Sprintf("%s does not answer: %v", u.Address, u.Cause)
}

// NotTheAPI: the answer does not follow the contract.
type NotTheAPI struct {
	Address string
	Status  int
	What    string
}

func (n *NotTheAPI) Error() string {
	return fmt.Sprintf("%s answered with status %d and %s", n.Address, n.Status, n.What)
}

// NotFound: the API answered that the resource does not exist. A 404 with another code says nothing of the resource.
func NotFound(err error) bool { return HasCode(err, "not_found") }

// HasCode: the API refused with this code.
func HasCode(err error, code string) bool {
	var problem *Problem
	return errors.As(err, &problem) && string(problem.Code) == code
}

// Passing: the error may pass by itself, so that a waiting caller continues to wait.
func Passing(err error) bool {
	var problem *Problem
	var unreachable *Unreachable
	return (errors.As(err, &problem) && problem.Retryable) ||
		(errors.As(err, &unreachable) && !errors.Is(err, context.Canceled))
}

// Client of one API, with one credential.
type Client struct {
	*gen.Client
	address string
}

// New makes a client of the API at `address` (http or https). Every request carries `credential`: over http only on this
// machine, unless `allowHTTP`.
func New(address, credential, version string, allowHTTP bool) (*Client, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") {
		return nil, fmt.Errorf("%q is not an API's address: it should be https://host or http://host:port", address)
	}
	if parsed.Scheme == "http" && !allowHTTP && !isLoopback(parsed.Hostname()) {
		return nil, fmt.Errorf("%q would get the credential unencrypted: use https, or set allow_http if nobody can listen there", address)
	}
	sign := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+credential)
		request.Header.Set("User-Agent", "terraform-provider-quorate/"+version)
		request.GetBody = nil // Ask repeats requests. The transport must not do so without its knowledge.
		return nil
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	doer := &http.Client{Timeout: callTimeout, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // a redirect must not carry the credential elsewhere
	}}
	client, err := gen.NewClient(strings.TrimRight(address, "/"), gen.WithHTTPClient(doer), gen.WithRequestEditorFn(sign))
	return &Client{client, address}, err
}

func isLoopback(host string) bool {
	address := net.ParseIP(host)
	return host == "localhost" || (address != nil && address.IsLoopback())
}

// NewIdempotencyKey makes a key for one POST and its repetitions.
func NewIdempotencyKey() *string {
	var random [16]byte
	_, _ = rand.Read(random[:])
	key := "terraform-" + hex.EncodeToString(random[:])
	return &key
}

// Ask repeats a call until it has an answer, and reads it. It is for repeatable calls only: GET, DELETE, and POST with an
// Idempotency-Key.
func Ask[Answer any](ctx context.Context, c *Client, call func(context.Context) (*http.Response, error)) (*Answer, error) {
	_, answer, err := AskWithHeader[Answer](ctx, c, call)
	return answer, err
}

// AskWithHeader is Ask that also returns the answer's header.
func AskWithHeader[Answer any](
	ctx context.Context, c *Client, call func(context.Context) (*http.Response, error),
) (http.Header, *Answer, error) {
	pause := pauseFirst
	for attempt := 1; ; attempt++ {
		header, body, err := c.once(ctx, call)
		if err == nil {
			answer := new(Answer)
			if len(body) == 0 { // 204
				return header, answer, nil
			}
			if err := json.Unmarshal(body, answer); err != nil {
				return nil, nil, &NotTheAPI{c.address, http.StatusOK, "JSON of another shape: " + err.Error()}
			}
			return header, answer, nil
		}
		wait, again := repeatAfter(err, header, pause)
		if !again || attempt == attempts {
			return nil, nil, err
		}
		select {
		case <-ctx.Done():
			return nil, nil, err
		case <-time.After(wait):
		}
		pause = min(2*pause, pauseMax)
	}
}

func repeatAfter(err error, header http.Header, pause time.Duration) (time.Duration, bool) {
	var problem *Problem
	var unreachable *Unreachable
	switch {
	case errors.As(err, &problem) && problem.Retryable:
		if seconds, err := strconv.Atoi(header.Get("Retry-After")); err == nil && seconds >= 0 {
			return min(time.Duration(seconds)*time.Second, pauseMax), true
		}
		return pause, true
	case errors.As(err, &unreachable):
		return pause, !errors.Is(err, context.Canceled)
	}
	return 0, false
}

func (c *Client) once(ctx context.Context, call func(context.Context) (*http.Response, error)) (http.Header, []byte, error) {
	response, err := call(ctx)
	if err != nil {
		var transport *url.Error
		if errors.As(err, &transport) {
			err = transport.Err // without the address, which the message already has
		}
		return nil, nil, &Unreachable{c.address, !isDialError(err), err}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, answerBytesMax))
	if err != nil {
		return nil, nil, &Unreachable{c.address, true, err}
	}
	kind, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	switch {
	case response.StatusCode == http.StatusNoContent:
		return response.Header, nil, nil
	case response.StatusCode >= 200 && response.StatusCode < 300 && kind == "application/json" && len(body) > 0:
		return response.Header, body, nil
	case kind == "application/problem+json":
		problem := new(Problem)
		if json.Unmarshal(body, &problem.Problem) == nil && problem.Code != "" {
			return response.Header, nil, problem
		}
	}
	if isGateways(response.StatusCode) {
		cause := fmt.Errorf("a gateway before it answered with status %d", response.StatusCode)
		return response.Header, nil, &Unreachable{c.address, true, cause}
	}
	return nil, nil, &NotTheAPI{c.address, response.StatusCode, describe(kind, body)}
}

// isGateways: statuses with which a gateway reports that it got no answer from the API.
func isGateways(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
}

func describe(kind string, body []byte) string {
	if kind == "" {
		kind = "no content type"
	}
	begin := string(bytes.ToValidUTF8(body[:min(len(body), 80)], []byte("?")))
	return fmt.Sprintf("%s: %q", kind, begin)
}

func isDialError(err error) bool {
	var operation interface{ Unwrap() error }
	return errors.As(err, &operation) && strings.HasPrefix(err.Error(), "dial ")
}
