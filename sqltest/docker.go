package sqltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ory/dockertest/v3"
	dc "github.com/ory/dockertest/v3/docker"
)

const (
	// pullTimeout bounds the download of an image, and pullStall a pause in it.
	pullTimeout = 10 * time.Minute
	pullStall   = time.Minute

	// The labels mark sqltest's containers, and record the folder of each one, and the id of the state that it is in.
	labelRoot   = "sqltest.root"
	labelState  = "sqltest.state"
	labelFolder = "sqltest.folder"

	// abandoned is the age of a container that no run needs any more, whoever has started it.
	abandoned = 24 * time.Hour

	// expiry is the lifetime of a container where no docker command can end it.
	expiry = time.Hour
)

// image is the image of a server on a Docker daemon.
type image struct {
	product  product
	pool     *dockertest.Pool
	endpoint string
	root     string
	state    string // the id of the state
	name     string
}

// findImage connects to Docker, and pulls the image if it is missing.
func findImage(ctx context.Context, st state, p product, name string) (origin, error) {
	endpoint := dockerEndpoint(ctx)
	pool, err := dockertest.NewPool(endpoint)
	if err != nil {
		return nil, err
	}
	img := image{product: p, pool: pool, endpoint: endpoint, root: st.root, name: name}
	if img.state, err = st.id(); err != nil {
		return nil, err
	}

	reachable, cancel := context.WithTimeout(ctx, unhurriedly)
	defer cancel()
	if err := pool.Client.PingWithContext(reachable); err != nil {
		return nil, fmt.Errorf("docker does not answer: %w", err)
	}
	if err := img.removeOrphans(ctx); err != nil {
		return nil, err
	}
	if _, err := pool.Client.InspectImage(name); err == nil {
		return img, nil
	}
	pulling, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	repository, tag := img.repository()
	options := dc.PullImageOptions{Repository: repository, Tag: tag, InactivityTimeout: pullStall, Context: pulling}
	if err := pool.Client.PullImage(options, credentials(repository)); err != nil {
		return nil, fmt.Errorf("pull: %w", err)
	}
	return img, nil
}

// dockerEndpoint returns the endpoint that the docker command uses, which may come from a context, as of Docker
// Desktop. It is empty for the default.
func dockerEndpoint(ctx context.Context) string {
	if endpoint := os.Getenv("DOCKER_HOST"); endpoint != "" {
		return endpoint
	}
	ctx, cancel := context.WithTimeout(ctx, quickly)
	defer cancel()
	out, err := exec.CommandContext(ctx, "docker", "context", "inspect", "--format", "{{.Endpoints.docker.Host}}").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// hostOverride is the variable with the name that the machine with the Docker daemon has here. It is that of testcontainers.
const hostOverride = "TESTCONTAINERS_HOST_OVERRIDE"

// remoteHost returns the host of a Docker daemon on another machine, or outside of this container.
func remoteHost(endpoint string) (host string, ok bool) {
	host = os.Getenv(hostOverride)
	if u, err := url.Parse(endpoint); host == "" && err == nil && u.Scheme == "tcp" {
		host = u.Hostname()
	}
	return host, host != "" && host != "localhost" && host != "127.0.0.1"
}

// credentials returns the credentials that `docker login` has stored for the image's registry.
func credentials(repository string) dc.AuthConfiguration {
	host, _, ok := strings.Cut(repository, "/")
	if !ok || !strings.ContainsAny(host, ".:") {
		return dc.AuthConfiguration{}
	}
	if auth, err := dc.NewAuthConfigurationsFromCredsHelpers(host); err == nil {
		return *auth
	}
	return dc.AuthConfiguration{}
}

func (i image) repository() (repository, tag string) {
	repository, tag = dc.ParseRepositoryTag(i.name)
	return repository, choose(tag == "", "latest", tag)
}

func (i image) String() string { return "docker image " + i.name }

// removeOrphans removes containers of sqltest whose folder is gone. Nothing else would remove them. The folders of another state
// may be on another machine, or in another container, that uses the same daemon: what belongs to it is removed by its age.
func (i image) removeOrphans(ctx context.Context) error {
	found, err := i.pool.Client.ListContainers(dc.ListContainersOptions{
		All:     true,
		Filters: map[string][]string{"label": {labelRoot + "=" + i.root}},
		Context: ctx,
	})
	if err != nil {
		return err
	}
	for _, c := range found {
		if c.Labels[labelState] != i.state && time.Since(time.Unix(c.Created, 0)) < abandoned {
			continue
		}
		if _, err := os.Stat(c.Labels[labelFolder]); !errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := i.remove(ctx, c.ID); err != nil {
			return err
		}
	}
	return nil
}

func (i image) remove(ctx context.Context, id string) error {
	err := i.pool.Client.RemoveContainer(dc.RemoveContainerOptions{ID: id, Force: true, RemoveVolumes: true, Context: ctx})
	if gone := (*dc.NoSuchContainer)(nil); errors.As(err, &gone) {
		return nil
	}
	// Another process is removing it.
	if answer := (*dc.Error)(nil); errors.As(err, &answer) && answer.Status == http.StatusConflict {
		return nil
	}
	return err
}

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
