package sqltest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
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

	// abandoned is the age at which a container of another state is taken to be unused.
	abandoned = 24 * time.Hour
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
	if _, digest, ok := strings.Cut(name, "@"); ok {
		tag = digest
	}
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
	registry, _, ok := strings.Cut(repository, "/")
	if !ok || registry != "localhost" && !strings.ContainsAny(registry, ".:") || registry == "docker.io" {
		registry = "https://index.docker.io/v1/"
	}
	if auth, err := dc.NewAuthConfigurationsFromCredsHelpers(registry); err == nil {
		return *auth
	}
	if all, err := dc.NewAuthConfigurationsFromDockerCfg(); err == nil {
		return all.Configs[registry]
	}
	return dc.AuthConfiguration{}
}

// repository returns the parts of an image's name, without a digest.
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
