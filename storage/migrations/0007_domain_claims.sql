-- A claim that is not proven keeps nobody else from the name: only what is proven is one domain's alone.
DROP INDEX domains_place;
CREATE UNIQUE INDEX domains_place ON domains (hostname, path) WHERE status IN ('verified', 'active');
CREATE INDEX domains_name ON domains (hostname);
