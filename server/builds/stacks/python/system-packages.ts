import { requires, type PythonProject } from './project.ts'

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
      'pycairo',
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
]

/** What the project needs from Debian to install and to run. */
export function pythonSystemPackages(
  project: PythonProject,
  from_git: boolean,
): { build: string[]; runtime: string[] } {
  const used = NEEDS.filter(({ packages }) => requires(project, ...packages))
  return {
    build: [...used.flatMap(({ build }) => build ?? []), ...(from_git ? ['git'] : [])],
    runtime: used.flatMap(({ runtime }) => runtime ?? []),
  }
}
