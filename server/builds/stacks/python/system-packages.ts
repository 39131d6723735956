import type { SourceTree } from '../../plan.ts'
import { skim } from '../../tree-queries.ts'
import { allRequirements, type PythonProject } from './project.ts'

const COMPILER = ['gcc', 'g++', 'libc6-dev', 'make', 'pkg-config']

/** Debian packages that Python packages without a ready-made wheel need. */
const NEEDS: readonly {
  packages: readonly string[]
  build?: readonly string[]
  runtime?: readonly string[]
}[] = [
  {
    packages: ['psycopg2', 'psycopg', 'psycopg[c]'],
    build: [...COMPILER, 'libpq-dev'],
    runtime: ['libpq5'],
  },
  {
    packages: ['mysqlclient'],
    build: [...COMPILER, 'default-libmysqlclient-dev'],
    runtime: ['libmariadb3'],
  },
  {
    packages: [
      'uwsgi',
      'dlib',
      'pystemmer',
      'annoy',
      'hnswlib',
      'chroma-hnswlib',
      'fasttext',
      'netifaces',
      'jpype1',
    ],
    build: COMPILER,
  },
  {
    packages: ['python-ldap'],
    build: [...COMPILER, 'libldap2-dev', 'libsasl2-dev'],
    runtime: ['libldap2-dev', 'libsasl2-2'],
  },
  { packages: ['pyodbc'], build: [...COMPILER, 'unixodbc-dev'], runtime: ['unixodbc'] },
  {
    packages: ['pycurl'],
    build: [...COMPILER, 'libcurl4-openssl-dev', 'libssl-dev'],
    runtime: ['libcurl4'],
  },
  { packages: ['opencv-python', 'opencv-contrib-python'], runtime: ['libgl1', 'libglib2.0-0'] },
  {
    packages: ['pydub', 'moviepy', 'ffmpeg-python', 'openai-whisper', 'yt-dlp'],
    runtime: ['ffmpeg'],
  },
  { packages: ['pdf2image'], runtime: ['poppler-utils'] },
  { packages: ['pytesseract'], runtime: ['tesseract-ocr'] },
  {
    packages: ['weasyprint'],
    runtime: ['libpango-1.0-0', 'libpangoft2-1.0-0', 'libharfbuzz-subset0'],
  },
  { packages: ['python-magic'], runtime: ['libmagic1'] },
  {
    packages: ['pycairo', 'rlpycairo', 'pygobject', 'manimpango', 'pangocairocffi', 'manim'],
    build: [...COMPILER, 'libcairo2-dev', 'libpango1.0-dev', 'libgirepository1.0-dev'],
    runtime: ['libcairo2', 'libpango-1.0-0', 'libpangocairo-1.0-0'],
  },
  { packages: ['cairosvg', 'cairocffi'], runtime: ['libcairo2'] },
  { packages: ['pyzbar'], runtime: ['libzbar0'] },
  { packages: ['soundfile', 'librosa'], runtime: ['libsndfile1'] },
  { packages: ['pyaudio'], build: [...COMPILER, 'portaudio19-dev'], runtime: ['libportaudio2'] },
  { packages: ['pygraphviz'], build: [...COMPILER, 'graphviz', 'libgraphviz-dev'], runtime: ['graphviz'] },
  { packages: ['graphviz', 'pydot', 'diagrams'], runtime: ['graphviz'] },
  { packages: ['wand'], runtime: ['libmagickwand-dev'] },
  {
    packages: ['gdal'],
    build: [...COMPILER, 'gdal-bin', 'libgdal-dev'],
    runtime: ['gdal-bin', 'libgdal-dev'],
  },
  {
    packages: ['xmlsec', 'python3-saml'],
    build: [...COMPILER, 'libxml2-dev', 'libxmlsec1-dev'],
    runtime: ['libxmlsec1-openssl'],
  },
  {
    packages: ['gssapi', 'kerberos', 'requests-kerberos'],
    build: [...COMPILER, 'libkrb5-dev'],
    runtime: ['libgssapi-krb5-2'],
  },
  { packages: ['python-snappy'], build: [...COMPILER, 'libsnappy-dev'], runtime: ['libsnappy1v5'] },
]

/** What the project needs from Debian to install and to run. */
export function pythonSystemPackages(
  tree: SourceTree,
  project: PythonProject,
  from_git: boolean,
): { build: string[]; runtime: string[] } {
  const required = allRequirements(tree, project)
  const used = NEEDS.filter(({ packages }) => packages.some((name) => required.has(name)))
  // Part of Django itself, it loads the libraries of GDAL as soon as it is imported.
  if (usesGeoDjango(tree)) used.push({ packages: [], runtime: ['gdal-bin', 'libgdal-dev'] })
  return {
    build: [...used.flatMap(({ build }) => build ?? []), ...(from_git ? ['git'] : [])],
    runtime: used.flatMap(({ runtime }) => runtime ?? []),
  }
}

const SETTINGS = /(?:^|\/)(?:settings(?:\/\w+)?|base|production|prod)\.py$/

function usesGeoDjango(tree: SourceTree): boolean {
  return tree
    .files()
    .filter((path) => SETTINGS.test(path))
    .slice(0, 20)
    .some((path) => /['"]django\.contrib\.gis['"]/.test(skim(tree, path)))
}
