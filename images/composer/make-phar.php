<?php
// Packs Debian's Composer, which is spread over /usr/share/php, into one file that runs wherever PHP is.
$phar = new Phar('/tmp/composer.phar');
$phar->startBuffering();
$files = new RecursiveIteratorIterator(new RecursiveDirectoryIterator('/usr/share/php', FilesystemIterator::SKIP_DOTS | FilesystemIterator::FOLLOW_SYMLINKS));
foreach ($files as $file) {
    // Debian's files load each other by absolute paths, which have to lead into the archive.
    $text = str_replace('/usr/share/php/', 'phar://composer.phar/share/php/', file_get_contents($file->getPathname()));
    $phar->addFromString('share/php/' . substr($file->getPathname(), strlen('/usr/share/php/')), $text);
}
// The first line is for the shell, not for PHP.
$phar->addFromString('bin/composer', preg_replace('/^#!.*\n/', '', file_get_contents('/usr/bin/composer')));
$phar->setStub("#!/usr/bin/env php\n<?php\nPhar::mapPhar('composer.phar');\n"
    . "set_include_path('phar://composer.phar/share/php' . PATH_SEPARATOR . get_include_path());\n"
    . "require 'phar://composer.phar/bin/composer';\n__HALT_COMPILER();");
$phar->stopBuffering();
