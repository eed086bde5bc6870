package sqltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ory/dockertest/v3"
	dc "github.com/ory/dockertest/v3/docker"
)

// expiry is the lifetime of a container where no docker command can end it.
const expiry = time.Hour

// container is a server in Docker.
type container struct {
	image image
	inst  *instance
	run   dockertest.RunOptions
	own   bool
	made  bool
	ip    string // where its port is published
	port  string
}

func (i image) host(ctx context.Context, inst *instance, password string, o order) (host, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	c := &container{image: i, inst: inst, own: o.own, ip: "127.0.0.1", port: port}
	// A remote daemon (such as Docker in Docker, or outside of this container) publishes ports on its own host.
	published := c.ip
	if host, ok := remoteHost(i.endpoint); ok {
		c.ip, published = host, "0.0.0.0"
	}
	repository, tag := i.repository()
	if strings.Contains(i.name, "@") { // dockertest knows no digests; the id of the image has the form of a name
		info, err := i.pool.Client.InspectImage(i.name)
		if err != nil {
			return nil, err
		}
		repository, tag, _ = strings.Cut(info.ID, ":")
	}
	c.run = dockertest.RunOptions{
		Name:         "sqltest-" + filepath.Base(inst.dir),
		Repository:   repository,
		Tag:          tag,
		Env:          i.product.environment(password),
		Cmd:          append(i.product.command(), o.options(i.product, containerTLS)...),
		Labels:       map[string]string{labelRoot: i.root, labelState: i.state, labelFolder: inst.dir},
		PortBindings: map[dc.Port][]dc.PortBinding{dc.Port(i.product.port() + "/tcp"): {{HostIP: published, HostPort: port}}},
	}
	if o.tls != nil {
		if err := c.secure(o.tls); err != nil {
			return nil, err
		}
	}
	if o.primary != nil {
		if err := c.follow(o.primary); err != nil {
			return nil, err
		}
	}
	return c, errors.Join(
		inst.write("container", c.run.Name),
		inst.write("docker-host", i.endpoint),
	)
}

// sharedServerShares is the CPU weight of the shared server, which has dozens of processes, where processors are
// scarce. Docker's default, 1024, is the weight of all test processes together, or of one other process.
const sharedServerShares = 4 * 1024

// start creates the container on the first call. The data of the shared server is in memory; that of an own server must
// survive a stop.
func (c *container) start(context.Context) error {
	if c.made {
		return c.client().StartContainer(c.run.Name, nil)
	}
	resource, err := c.image.pool.RunWithOptions(&c.run, func(h *dc.HostConfig) {
		h.PublishAllPorts = false
		if c.own {
			h.Mounts = []dc.HostMount{{Type: "volume", Target: c.image.product.dataFolder()}}
		} else {
			h.Tmpfs = map[string]string{c.image.product.dataFolder(): ""}
			h.CPUShares = sharedServerShares
		}
	})
	if err != nil {
		return err
	}
	c.made = true
	if _, err := exec.LookPath("docker"); err != nil {
		return resource.Expire(uint(expiry.Seconds()))
	}
	return nil
}

func (c *container) client() *dc.Client { return c.image.pool.Client }

func (c *container) address() string { return net.JoinHostPort(c.ip, c.port) }

func (c *container) running(ctx context.Context) error {
	info, err := c.client().InspectContainerWithContext(c.run.Name, ctx)
	if err != nil {
		return err
	}
	if !info.State.Running {
		return fmt.Errorf("the container has ended: exit status %d", info.State.ExitCode)
	}
	return nil
}

func (c *container) log() string {
	ctx, cancel := context.WithTimeout(context.Background(), quickly)
	defer cancel()
	var out bytes.Buffer
	_ = c.client().Logs(dc.LogsOptions{
		Context: ctx, Container: c.run.Name, OutputStream: &out, ErrorStream: &out, Stdout: true, Stderr: true, Tail: "50",
	})
	return lastLines(out.Bytes(), 50)
}

// stop passes the signal explicitly, because dockertest configures another one for its containers.
func (c *container) stop(ctx context.Context) error {
	return c.end(ctx, choose(c.image.product.stopSignal() == "INT", dc.SIGINT, dc.SIGTERM))
}

func (c *container) kill(ctx context.Context) error { return c.end(ctx, dc.SIGKILL) }

func (c *container) end(ctx context.Context, signal dc.Signal) error {
	err := c.client().KillContainer(dc.KillContainerOptions{ID: c.run.Name, Signal: signal, Context: ctx})
	if err != nil {
		return err
	}
	_, err = c.client().WaitContainerWithContext(c.run.Name, ctx)
	return err
}

// pause stops all processes of a container. Docker gives up and resumes them if that takes too long, which happens when
// the processors are few and busy; pause then tries again, up to five times.
func (c *container) pause(ctx context.Context) error {
	for tries := 5; ; tries-- {
		err := c.client().PauseContainer(c.run.Name)
		if err == nil || tries == 0 || ctx.Err() != nil || !strings.Contains(err.Error(), "unable to freeze") {
			return err
		}
	}
}

func (c *container) resume(context.Context) error { return c.client().UnpauseContainer(c.run.Name) }
