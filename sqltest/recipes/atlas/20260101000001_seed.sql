INSERT INTO goods VALUES (1, 'tea'), (2, 'milk');
