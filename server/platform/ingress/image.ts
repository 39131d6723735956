/**
 * The HAProxy image the edge runs. HAProxy 3.0 is a long-term release that both Debian and the official image
 * carry, so the same configuration works whether the image was pulled or made from Debian's packages by `npm
 * run images`.
 */
export const EDGE_IMAGE = 'haproxy:3.0-trixie'
