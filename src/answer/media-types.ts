/*
 * Media types by the extensions of files, as far as the Web uses them: what Express names by `res.type('png')`.
 *
 * Source: MDN, "Common media types"; IANA, "Media Types". Express has a longer list (mime-db).
 */

const EXTENSIONS: Readonly<Record<string, string>> = {
  'application/epub+zip': 'epub',
  'application/gzip': 'gz',
  'application/java-archive': 'jar',
  'application/json': 'json map',
  'application/ld+json': 'jsonld',
  'application/manifest+json': 'webmanifest',
  'application/msword': 'doc',
  'application/octet-stream': 'bin',
  'application/pdf': 'pdf',
  'application/postscript': 'ps',
  'application/rss+xml': 'rss',
  'application/atom+xml': 'atom',
  'application/rtf': 'rtf',
  'application/sql': 'sql',
  'application/toml': 'toml',
  'application/vnd.apple.mpegurl': 'm3u8',
  'application/vnd.ms-excel': 'xls',
  'application/vnd.ms-fontobject': 'eot',
  'application/vnd.ms-powerpoint': 'ppt',
  'application/vnd.oasis.opendocument.presentation': 'odp',
  'application/vnd.oasis.opendocument.spreadsheet': 'ods',
  'application/vnd.oasis.opendocument.text': 'odt',
  'application/vnd.openxmlformats-officedocument.presentationml.presentation': 'pptx',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': 'xlsx',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document': 'docx',
  'application/vnd.rar': 'rar',
  'application/wasm': 'wasm',
  'application/x-7z-compressed': '7z',
  'application/x-bzip2': 'bz2',
  'application/x-sh': 'sh',
  'application/x-tar': 'tar',
  'application/xhtml+xml': 'xhtml',
  'application/xml': 'xml xsl',
  'application/zip': 'zip',
  'audio/aac': 'aac',
  'audio/midi': 'mid midi',
  'audio/mp4': 'm4a',
  'audio/mpeg': 'mp3',
  'audio/ogg': 'oga ogg opus',
  'audio/wav': 'wav',
  'audio/webm': 'weba',
  'audio/x-flac': 'flac',
  'font/otf': 'otf',
  'font/ttf': 'ttf',
  'font/woff': 'woff',
  'font/woff2': 'woff2',
  'image/apng': 'apng',
  'image/avif': 'avif',
  'image/bmp': 'bmp',
  'image/gif': 'gif',
  'image/jpeg': 'jpeg jpg',
  'image/png': 'png',
  'image/svg+xml': 'svg',
  'image/tiff': 'tif tiff',
  'image/vnd.microsoft.icon': 'ico',
  'image/webp': 'webp',
  'model/gltf+json': 'gltf',
  'model/gltf-binary': 'glb',
  'text/calendar': 'ics',
  'text/css': 'css',
  'text/csv': 'csv',
  'text/html': 'html htm',
  'text/javascript': 'js mjs',
  'text/markdown': 'md',
  'text/plain': 'txt text log conf ini',
  'text/vtt': 'vtt',
  'text/x-vcard': 'vcf',
  'text/yaml': 'yaml yml',
  'video/mp2t': 'ts',
  'video/mp4': 'mp4',
  'video/mpeg': 'mpeg mpg',
  'video/ogg': 'ogv',
  'video/quicktime': 'mov',
  'video/webm': 'webm',
  'video/x-matroska': 'mkv',
  'video/x-msvideo': 'avi',
};

const TEXT = /^\s*(?:text\/|application\/(?:javascript|json|manifest\+json)\s*(?:;|$))/i;

const BY_EXTENSION: ReadonlyMap<string, string> = new Map(
  Object.entries(EXTENSIONS).flatMap(([type, names]) => names.split(' ').map((name): [string, string] => [name, type])),
);

/** The media type of an extension or a file's name; undefined for an unknown one. */
// "png", ".png", "a/b.PNG" → "image/png"
export function typeOfExtension(name: string): string | undefined {
  return BY_EXTENSION.get(name.slice(name.lastIndexOf('.') + 1).toLowerCase());
}

/** The media type of an extension, or a media type itself. Texts and JSON get `charset=utf-8` if they lack a charset. */
export function toContentType(name: string): string | undefined {
  const type = name.includes('/') ? name : typeOfExtension(name);
  const isText = type !== undefined && TEXT.test(type) && !type.includes('charset');
  return isText ? `${type}; charset=utf-8` : type;
}
