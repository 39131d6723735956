import type { ImageFamilyName } from './base-images.ts'

/** Programs of tool managers by the stacks that read their version themselves. */
export const READ_BY_STACK: ReadonlyMap<string, readonly string[]> = new Map<string, readonly string[]>([
  ...many(['node', 'nodejs', 'npm', 'pnpm', 'yarn'], ['node', 'bun']),
  ['bun', ['node', 'bun']],
  ...many(['python', 'uv', 'poetry', 'pipenv', 'pdm', 'pip'], ['python']),
  ...many(['go', 'golang'], ['go']),
  ...many(['ruby', 'bundler'], ['ruby']),
  ...many(['java', 'openjdk', 'jdk', 'maven', 'gradle'], ['java', 'kotlin', 'scala', 'clojure']),
  ['kotlin', ['kotlin', 'java']],
  ...many(['php', 'composer'], ['php']),
  ...many(['rust', 'cargo'], ['rust']),
  ...many(['elixir', 'erlang'], ['elixir', 'erlang', 'gleam']),
  ...['deno', 'crystal', 'zig', 'gleam', 'swift', 'dart', 'flutter', 'julia', 'nim', 'scala'].map(
    (name) => [name, [name]] as const,
  ),
  ...many(['dotnet', 'dotnet-core'], ['dotnet']),
])

function many<T>(names: readonly string[], value: T): (readonly [string, T])[] {
  return names.map((name) => [name, value] as const)
}

/** Tools that lie in one folder of an image, which can be copied out of it. */
export interface CopiedTool {
  image: ImageFamilyName
  paths: readonly string[]
  /** Folder of its programs, where that is not on PATH already. */
  bin?: string
  /** A line that makes its programs callable. */
  link?: string
}
const NODE: CopiedTool = {
  image: 'node',
  paths: ['/usr/local/bin/node', '/usr/local/lib/node_modules'],
  link: 'ln -sf ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm && ln -sf ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx',
}
const GO: CopiedTool = { image: 'go', paths: ['/usr/local/go'], bin: '/usr/local/go/bin' }
const JAVA: CopiedTool = { image: 'jdk', paths: ['/opt/java/openjdk'], bin: '/opt/java/openjdk/bin' }
export const COPIED_TOOLS: ReadonlyMap<string, CopiedTool> = new Map([
  ...many(['node', 'nodejs'], NODE),
  ...many(['go', 'golang'], GO),
  ...many(['java', 'openjdk', 'jdk'], JAVA),
])

/** Packages that have the same name in Debian as elsewhere. */
const SAME = new Set(
  `aria2 automake bash bc bison build-essential bzip2 ca-certificates clang cmake cron curl dnsutils exiftool ffmpeg
  figlet file fish flex fontconfig g++ gawk gcc gdb gettext gh ghostscript git git-lfs gnupg graphviz gzip htop
  imagemagick inkscape iproute2 jq less libtool libreoffice llvm locales lsof make mediainfo meson nano nasm
  netcat-openbsd ninja-build nmap openssh-client openssl optipng p7zip-full pandoc parallel patch perl pkg-config
  pngquant poppler-utils procps qpdf rsync ruby screen socat sox sqlite3 strace sudo supervisor swig tar telnet
  tesseract-ocr tmux tree tzdata unzip vim wget xvfb xz-utils yasm zip zsh zstd chromium rclone restic nginx
  age antiword asciidoc aspell autoconf autossh autotrace bat brotli busybox cabextract calibre catdoc ccache certbot
  clisp cppcheck csvkit dcraw dnsmasq dos2unix doxygen dstat dumb-init espeak espeak-ng exiv2 expect flac fontforge
  fpc fzf gfortran gifsicle gnuplot gosu gperf graphicsmagick haproxy help2man httpie hunspell intltool iotop
  jpegoptim lame ldc lftp logrotate lrzip luajit lz4 lzip mecab memcached miller minisign mkvtoolnix moreutils mosh
  mpg123 ncdu neovim net-tools netcat-traditional ocrmypdf octave osmium-tool pass pdfgrep pngcrush postgis potrace pv
  qrencode redis-server ripgrep s6 sbcl scour siege sshpass stress-ng sysstat texinfo tidy tini traceroute
  ttfautohint unixodbc valgrind varnish whois wireguard-tools wkhtmltopdf woff2 wrk xmlstarlet xmlto yt-dlp zopfli`
    .split(/\s+/)
    .filter((name) => name !== ''),
)

/** Names of Nix and of tool managers, and the packages of Debian that bring the same. */
const RENAMED: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    awscli: ['awscli'],
    awscli2: ['awscli'],
    cacert: ['ca-certificates'],
    cairo: ['libcairo2-dev'],
    coreutils: [],
    chromedriver: ['chromium-driver'],
    dig: ['dnsutils'],
    'ffmpeg-full': ['ffmpeg'],
    ffmpeg_6: ['ffmpeg'],
    freetype: ['libfreetype6-dev'],
    glib: ['libglib2.0-0'],
    gnumake: ['make'],
    gnupg1: ['gnupg'],
    icu: ['libicu-dev'],
    libGL: ['libgl1'],
    libffi: ['libffi-dev'],
    libjpeg: ['libjpeg-dev'],
    libmysqlclient: ['default-libmysqlclient-dev'],
    libpng: ['libpng-dev'],
    libpq: ['libpq-dev'],
    libsodium: ['libsodium-dev'],
    libuuid: ['uuid-dev'],
    libwebp: ['libwebp-dev'],
    libxml2: ['libxml2-dev'],
    libxslt: ['libxslt1-dev'],
    libyaml: ['libyaml-dev'],
    mariadb: ['mariadb-client'],
    mysql: ['default-mysql-client'],
    mysql80: ['default-mysql-client'],
    ncurses: ['libncurses-dev'],
    ninja: ['ninja-build'],
    openssh: ['openssh-client'],
    pango: ['libpango1.0-dev'],
    pkgconfig: ['pkg-config'],
    poppler_utils: ['poppler-utils'],
    postgres: ['postgresql-client'],
    postgresql: ['postgresql-client', 'libpq-dev'],
    protobuf: ['protobuf-compiler'],
    protoc: ['protobuf-compiler'],
    readline: ['libreadline-dev'],
    redis: ['redis-tools'],
    sqlite: ['sqlite3'],
    tesseract: ['tesseract-ocr'],
    vips: ['libvips-dev'],
    zlib: ['zlib1g-dev'],
    imagemagickBig: ['imagemagick'],
    'imagemagick-full': ['imagemagick'],
    'libreoffice-fresh': ['libreoffice'],
    libwebp_tools: ['webp'],
    netcat: ['netcat-openbsd'],
    'netcat-gnu': ['netcat-traditional'],
    inetutils: ['iputils-ping', 'telnet'],
    iputils: ['iputils-ping'],
    librsvg: ['librsvg2-bin'],
    p7zip: ['p7zip-full'],
    xz: ['xz-utils'],
    gdal: ['gdal-bin'],
    geos: ['libgeos-dev'],
    proj: ['proj-bin'],
    zbar: ['zbar-tools', 'libzbar0'],
    'stdenv.cc.cc.lib': ['libstdc++6'],
    python: ['python3', 'python3-venv'],
    perl: ['perl'],
    php: ['php-cli'],
    rust: ['cargo'],
    lua: ['lua5.4'],
  }),
)

/** The packages of Debian that bring what another package manager calls by this name; undefined when unknown. */
export const debianPackages = (name: string): readonly string[] | undefined =>
  known(name) ?? known(name.replace(VERSION_IN_NAME, ''))

/** Nix has several versions of some packages side by side: `postgresql_16`, `ffmpeg_7-full`, `imagemagick7`. */
const VERSION_IN_NAME = /(?:_?\d+(?:_\d+)*)(?:-(?:full|headless))?$|[-_]headless$/

const known = (name: string): readonly string[] | undefined =>
  RENAMED.get(name) ?? (SAME.has(name) ? [name] : undefined)
