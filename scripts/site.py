"""What mkdocs lacks for the site of docs/. Every warning fails the build (mkdocs build --strict)."""

import logging
import os
import posixpath
import re
import shutil
from glob import glob
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag, urljoin

log = logging.getLogger("mkdocs.site")
repository = "https://github.com/sqllock/sqllock"
pages = {}  # by URL


def slug(text, separator):
    """Anchors are those of GitHub."""
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def on_config(config):
    config["mdx_configs"].setdefault("toc", {})["slugify"] = slug
    return config


def on_files(files, config):
    """A folder in the nav stands for its pages: README.md first, the others by name."""
    found = sorted(f.src_path.replace(os.sep, "/") for f in files.documentation_pages())
    named = set()

    def expand(entries):
        for entry in entries:
            if isinstance(entry, dict):
                yield {title: list(expand(sub)) if isinstance(sub, list) else sub for title, sub in entry.items()}
                named.update(sub for sub in entry.values() if isinstance(sub, str))
            elif entry.endswith("/"):
                inside = [f for f in found if f.startswith(entry)]
                named.update(inside)
                yield from sorted(inside, key=lambda f: (not f.endswith("/README.md"), f))
            else:
                named.add(entry)
                yield entry

    config["nav"] = list(expand(config["nav"]))
    for missing in set(found) - named:
        log.warning("%s is not in the nav of mkdocs.yml", missing)
    return files


def on_page_markdown(markdown, page, config, files):
    """Links to files outside of docs/ lead to the repository."""
    docs = posixpath.basename(config["docs_dir"])
    folder = posixpath.join(docs, posixpath.dirname(page.file.src_path.replace(os.sep, "/")))

    def link(match):
        target, hash, anchor = match[1].partition("#")
        path = posixpath.normpath(posixpath.join(folder, target))
        if path == docs or path.startswith(docs + "/"):
            return match[0]
        here = os.path.join(config["docs_dir"], "..", path)
        if not os.path.exists(here):
            log.warning("%s links to %s, which is not in the repository", page.file.src_path, match[1])
        kind = "tree" if os.path.isdir(here) else "blob"
        return f"]({repository}/{kind}/main/{path}{hash}{anchor})"

    return re.sub(r"\]\((\.\./[^)\s]*)\)", link, markdown)


class Page(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.anchors = set()
        self.links = []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.add(attributes.get("id"))
        if tag == "a":
            self.links.append(attributes.get("href") or "")


def on_page_content(html, page, config, files):
    """GitHub begins a list or a table without an empty line before it, the site does not."""
    for paragraph in re.findall(r"<p>.*?</p>", html, re.S):
        if re.search(r"\n(?:[-*] |\d+\. |\|)", paragraph):
            log.warning("%s: a list or a table needs an empty line before it: %s", page.file.src_path, paragraph[:80])
    # A wide table scrolls by itself. The page does not.
    return html.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")


def on_post_page(output, page, config):
    pages[page.url] = Page(output)
    return output


def on_post_build(config):
    for url, page in pages.items():
        for link in page.links:
            target, anchor = urldefrag(urljoin(url, link))
            if anchor and target in pages and unquote(anchor) not in pages[target].anchors:
                log.warning("%s links to %s, which has no such heading", url, link)
    add_scripts(os.path.join(config["site_dir"], "js"), config["site_dir"] + "/index.html")


def add_scripts(folder, page):
    """The theme of Debian's mkdocs lacks scripts that its pages load. Its menu, which a phone needs, needs jQuery: that has another name."""
    with open(page, encoding="utf-8") as f:
        loaded = re.findall(r'<script src="js/([^"]+)" defer>', f.read())
    for script in loaded:
        path = os.path.join(folder, script)
        if os.path.exists(path):
            continue
        if script.startswith("jquery"):
            shutil.copyfile(glob(os.path.join(folder, "jquery-*.js"))[0], path)
        else:
            open(path, "w").close()
