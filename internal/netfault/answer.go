package netfault

import (
	"strings"
)

// Answer is the server's answer to one request, which is held back or dropped.
type Answer struct {
	network *Network
	text    string

	asked    chan struct{} // closed when the request has been sent to the server
	answered chan struct{} // closed when the answer has come
	decided  chan struct{} // closed when it is known what happens to the answer
	passed   chan struct{} // closed when the answer has been sent to the client, or its connection has ended

	skip    int  // guarded by the network's mu: how many more requests are spared
	dropped bool // guarded by the network's mu until decided is closed
}

// HoldAnswer holds back the answer to the next request that runs a statement with this text in it or in its arguments,
// and what the server sends on that connection afterwards, until Pass or Drop. It is found in upper and lower case.
func (n *Network) HoldAnswer(text string) *Answer {
	return newAnswer(n, text, false)
}

// DropAnswer drops such an answer, and ends its connection.
func (n *Network) DropAnswer(text string) *Answer {
	return newAnswer(n, text, true)
}

func newAnswer(n *Network, text string, drop bool) *Answer {
	n.mu.Lock()
	defer n.mu.Unlock()
	a := &Answer{
		network: n, text: lower(text),
		asked: make(chan struct{}), answered: make(chan struct{}), decided: make(chan struct{}), passed: make(chan struct{}),
	}
	if drop {
		a.dropped = true
		close(a.decided)
	}
	n.armed = append(n.armed, a)
	return a
}

// lower returns a text without its capital letters. Bytes that are no letters of ASCII may be anything.
func lower(s string) string {
	text := []byte(s)
	for i, c := range text {
		if 'A' <= c && c <= 'Z' {
			text[i] = c + 'a' - 'A'
		}
	}
	return string(text)
}

// Skip spares the next requests of this number.
func (a *Answer) Skip(requests int) {
	a.network.mu.Lock()
	defer a.network.mu.Unlock()
	a.skip = requests
}

// Asked is closed when the request has been sent to the server.
func (a *Answer) Asked() <-chan struct{} { return a.asked }

// Answered is closed when the answer has come, and with it the statement has run.
func (a *Answer) Answered() <-chan struct{} { return a.answered }

// Pass passes the answer on. It returns when the answer has been sent, if it has come and the network is not cut. An answer
// that has not been asked for is no longer waited for.
func (a *Answer) Pass() {
	a.decide(false)
	for {
		n := a.network
		n.mu.Lock()
		changed, cut := n.changed, n.faults.cut
		a.disarm()
		n.mu.Unlock()
		select {
		case <-a.answered:
		default:
			return
		}
		if cut {
			return
		}
		select {
		case <-a.passed:
			return
		case <-changed:
		}
	}
}

// Drop drops the answer and ends its connection.
func (a *Answer) Drop() { a.decide(true) }

func (a *Answer) decide(drop bool) {
	a.network.mu.Lock()
	defer a.network.mu.Unlock()
	select {
	case <-a.decided:
	default:
		a.dropped = drop
		close(a.decided)
	}
}

// disarm has the network forget an answer whose request has not come. The caller holds the network's mu.
func (a *Answer) disarm() {
	n := a.network
	for i, b := range n.armed {
		if a == b {
			n.armed = append(n.armed[:i:i], n.armed[i+1:]...)
			return
		}
	}
}

// request is given what a client sends, before it is sent on.
func (l *line) request(data []byte) (sent chan struct{}, ok bool) {
	l.reading.Lock()
	runs := l.wire.request(data)
	l.reading.Unlock()
	n := l.network
	n.mu.Lock()
	defer n.mu.Unlock()
	n.requests++
	if len(n.armed) == 0 {
		return nil, true
	}
	for i := range runs {
		runs[i] = lower(runs[i])
	}
	for _, a := range n.armed {
		for _, run := range runs {
			if !strings.Contains(run, a.text) {
				continue
			}
			if a.skip > 0 {
				a.skip--
				continue
			}
			a.disarm()
			l.due = a
			return a.asked, true
		}
	}
	return nil, true
}

// answer is given what the server sends, before it is sent on.
func (l *line) answer(data []byte) (sent chan struct{}, ok bool) {
	l.reading.Lock()
	l.wire.answer(data)
	l.reading.Unlock()
	n := l.network
	n.mu.Lock()
	a := l.due
	l.due = nil
	n.mu.Unlock()
	if a == nil {
		return nil, true
	}
	close(a.answered)
	select {
	case <-a.decided:
	case <-l.ended:
		close(a.passed)
		return nil, false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if a.dropped {
		l.end()
		close(a.passed)
		return nil, false
	}
	return a.passed, true
}
