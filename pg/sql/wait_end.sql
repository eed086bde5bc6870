SELECT current_setting('sqllock.taken')
